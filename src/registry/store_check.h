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
#include "model/kernel_record.h"
#include "registry/store.h"

namespace cubist {

/// Something to hash again as it lies on disk: an entry of a store, or a kernel in a bundle of it.
struct EntryToCheck {
  std::string path;  ///< of the entry, or of the bundle's file
  Sha256Digest sha256;
  std::optional<std::uint64_t>
      size_bytes;  ///< as the manifest says; empty if no manifest is at hand
  std::shared_ptr<const StoredBundle> bundle{};  ///< that holds the kernel; null: an entry
  /// Why a bundle's file, which this stands for as a whole then, cannot be looked into.
  std::optional<Error> broken_bundle{};
  bool still_serves = false;  ///< broken_bundle: its kernels are read all the same
};

/// What there is in every layer: entries, then kernels that lie in bundles alone, each sorted by
/// path, and bundles that are broken as a whole. What lies among them and is none is named in
/// `strangers`. errors  kIo: a layer that is there cannot be listed
Result<std::vector<EntryToCheck>> list_entries(const Store& store,
                                               std::vector<std::string>& strangers);
/// The entries of one layer, without its bundles.
Result<std::vector<EntryToCheck>> list_entries_of_layer(const std::string& root,
                                                        std::vector<std::string>& strangers);

/// Where the layers have the records: every entry, and where there is none the first bundle. Those
/// that no layer has are named in `missing`. errors  kIo: a layer cannot be looked into
Result<std::vector<EntryToCheck>> find_entries(const Store& store,
                                               std::span<const KernelRecord* const> records,
                                               std::vector<const KernelRecord*>& missing);

/// What a look at one entry found; nothing if it is as its name says.
struct EntryFinding {
  std::size_t entry = 0;  ///< index in what was given
  Error error;
  bool bytes_are_right = false;  ///< the digest is; the deep look complained
};

struct CheckProgress {
  std::size_t files_done = 0;
  std::size_t files_total = 0;
  std::uint64_t bytes_done = 0;
};

struct CheckReport {
  std::vector<EntryFinding> findings;  ///< in the order of the entries
  std::size_t checked = 0;
  std::uint64_t bytes = 0;
  double seconds = 0;
};

struct CheckOptions {
  unsigned threads = 1;
  const std::atomic<bool>* cancel = nullptr;
  /// From the calling thread, ten times a second at most.
  std::function<void(const CheckProgress&)> progress;
  /// A further look at bytes that are as their digest says; from any thread. May be empty.
  std::function<Status(std::size_t entry, std::span<const std::uint8_t> bytes)> deep;
};

/// Hashes every entry again as it lies on disk. Writes nothing.
/// errors  kInterrupted
Result<CheckReport> check_entries(std::span<const EntryToCheck> entries,
                                  const CheckOptions& options);

}  // namespace cubist
