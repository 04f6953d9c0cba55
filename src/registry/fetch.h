#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "manifest/manifest.h"
#include "registry/http_request.h"
#include "registry/source.h"
#include "registry/store.h"

namespace cubist {

/// One artifact that is wanted; the pack is the one it belongs to. Both outlive the call.
struct FetchItem {
  const Pack* pack = nullptr;
  const KernelRecord* record = nullptr;
};

/// How far a run has come. Bytes are those of artifacts, not of the wire.
struct FetchProgress {
  std::size_t files_total = 0;
  std::size_t files_done = 0;  ///< present, fetched or failed
  std::size_t files_failed = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t bytes_done = 0;
  std::uint64_t received_bytes = 0;
  double seconds = 0;
};

struct FetchOptions {
  bool offline = false;               ///< only sources on this machine
  std::vector<Source> sources;        ///< in place of the packs' own
  SourceOpener open_oci{};            ///< opens those of kind kOci; null: none can be
  std::string manifest_folder;        ///< where relative locations of sources start
  unsigned parallel = 8;              ///< connections at once
  bool rehash_present = false;        ///< "present" means hashed, not only of the right size
  bool memory_if_unwritable = false;  ///< a store that cannot be written is a warning, not an error
  bool keep_bytes = false;            ///< hand out the bytes of what was fetched
  bool broken_is_known = false;       ///< no warning of a broken entry that is replaced
  std::shared_ptr<const HttpProfile> profile;  ///< null: from the environment
  const std::atomic<bool>* cancel = nullptr;
  std::function<void(const FetchProgress&)>
      progress;  ///< ten times a second at most, and at the end
};

/// What became of one item.
struct FetchedFile {
  enum class State : std::uint8_t { kPresent, kFetched, kInMemory, kFailed };
  State state = State::kFailed;
  std::string path;                    ///< of the entry; empty if there is none
  std::string origin;                  ///< where it came from; empty if it was present
  std::optional<Error> error;          ///< kFailed: one line per source that was tried
  std::optional<VerifiedCubin> cubin;  ///< kInMemory always; kFetched with keep_bytes
};

struct FetchReport {
  std::vector<FetchedFile> files;  ///< one per item, in their order
  HttpCounters http;
  std::uint64_t fetched_bytes = 0;  ///< of artifacts
  double seconds = 0;

  std::size_t count(FetchedFile::State state) const;
  /// The first failure, with how many more there are.
  Status status() const;
};

/// Brings artifacts into the store: present ones cost nothing, missing ones are fetched from the
/// sources in order, each once however many processes want it, verified before anything is written,
/// and published durably. A broken entry counts as missing and is replaced.
///
/// errors  of the run as a whole: kInterrupted; kIo (the store cannot be written); what failed for
///         single items is in the report. What was complete stays, nothing else is left behind
Result<FetchReport> fetch(const Store& store, std::span<const FetchItem> items,
                          const FetchOptions& options);

/// The bytes of one artifact: from the store, else fetched.
/// errors  kOffline, kNetwork, kIntegrity, kIo, kInterrupted
Result<VerifiedCubin> open_or_fetch(const Store& store, const FetchItem& item,
                                    const FetchOptions& options);

}  // namespace cubist
