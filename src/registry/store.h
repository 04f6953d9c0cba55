#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/kernel_record.h"
#include "model/verified_cubin.h"
#include "registry/bundle_shelf.h"
#include "registry/staged_file.h"
#include "registry/store_layout.h"
#include "trust/policy.h"

namespace cubist {

/// Verified bytes on disk, named by their digest (docs/design/fetch-store.md): entries, one file a
/// kernel, and bundles, which hold many. Holds no state but the paths and the bundles that it
/// opened (copies share those), so that many processes and threads may use one store at once; every
/// call is safe from any thread. Making one touches nothing; folders appear with the first install.
class Store {
 public:
  explicit Store(StoreOptions options);
  /// As store_options_from_environment() finds it, each layer looked at as trust::check_folder
  /// does.
  ///
  /// foreign  what to do about a layer that others can write; nothing: as CUBIST_FOREIGN_STORE says
  /// origin   what set that, as messages name it
  /// errors   kInvalidArgument; kUntrusted: a layer that others can write is refused
  static Result<Store> open(std::string_view root_override = {},
                            std::optional<trust::Policy> foreign = {},
                            std::string origin = "foreign_store");

  const std::string& root() const { return options_.root; }
  /// root() and the read-only layers below it, in search order.
  std::vector<std::string> layers() const;

  /// The artifact's bytes, read once and hashed; nullopt if no layer has it. Writes nothing.
  /// Entries of all layers come first, then the bundles of all layers; a broken one is passed over
  /// if a good one comes later.
  /// errors  kIntegrity: it is there but broken; names the file. kIo: it cannot be read
  Result<std::optional<VerifiedCubin>> open_verified(const KernelRecord& record) const;

  /// Where open_verified() would find a kernel.
  struct Location {
    std::string path;                            ///< of the entry, or of the bundle's file
    std::size_t layer = 0;                       ///< index into layers()
    std::shared_ptr<const StoredBundle> bundle;  ///< null: an entry of its own
  };
  /// A kernel with the record's size, judged by stat, or by a bundle's directory, alone; nullopt if
  /// no layer has one. errors  kIo: a layer cannot be looked into
  Result<std::optional<Location>> locate(const KernelRecord& record) const;
  /// The path of that.
  Result<std::optional<std::string>> find(const KernelRecord& record) const;

  /// The bundles of a layer. errors  kIo
  Result<std::shared_ptr<const BundleShelf::Layer>> bundles(const std::string& layer) const {
    return shelf_->layer(layer);
  }

  /// Puts the bytes in the writable layer, durably; returns the entry's path. Where a valid entry
  /// is there already nothing is written; a broken one is replaced by rename. Leaves nothing on
  /// failure. errors  kIo: says what to do about it
  Result<std::string> install(const VerifiedCubin& cubin) const;

  /// A verified file on its way in: written, not yet durable and not yet visible.
  struct Staged {
    Sha256Digest sha256;
    std::uint64_t size_bytes = 0;
    StagedFile file;
  };
  /// The two halves of install(), for many at once: publish() syncs the whole group with few calls.
  /// On failure the entries already published stay, the others vanish.
  Result<Staged> stage(const VerifiedCubin& cubin) const;
  Status publish(std::span<Staged> group) const;

  /// Keeps an entry of the writable layer from being removed by collect_garbage() while the
  /// descriptor is open; nullopt if that layer does not have it as an entry. Writes nothing.
  /// errors  kIo
  Result<std::optional<UniqueFd>> hold(const Sha256Digest& digest) const;

  /// Removes what dead writers left in tmp/; returns how many files.
  std::size_t sweep() const;

 private:
  Status prepare_folders() const;

  StoreOptions options_;
  std::shared_ptr<BundleShelf> shelf_;
};

/// Hashes an entry as it lies on disk through one reused buffer; returns its size in bytes.
///
/// size_bytes  as the manifest says; empty where no manifest is at hand
/// errors      kNotFound, kIo, kIntegrity (not a regular file, other size, other digest; says
/// which)
Result<std::uint64_t> check_entry(const std::string& path, const Sha256Digest& sha256,
                                  std::optional<std::uint64_t> size_bytes,
                                  std::vector<std::uint8_t>& buffer);

}  // namespace cubist
