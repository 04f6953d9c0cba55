#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "bundle/description.h"
#include "registry/store.h"

namespace cubist::bundle {

/// A bundle that lies in a layer of a store.
struct KeptBundle {
  std::string path;
  std::string layer;  ///< its root
  Sha256Digest identity;
  std::uint64_t file_bytes = 0;
  /// When it was last installed, pulled or relied on by either. Unit: seconds since the epoch.
  std::int64_t used_at = 0;
  std::optional<Description> description;
  std::optional<Error> error;  ///< why there is none
  /// What the store serves from it, by digest: its zip directory alone decides that, so a bundle
  /// with an error may have some.
  std::vector<Kernel> served;
  bool served_unknown = false;  ///< it cannot be looked into now; later it may serve
};

/// Those of all layers, in search order, then by identity. Their kernels are not hashed. One whose
/// name is another bundle's identity is broken. Writes nothing.
/// errors  kIo: a layer cannot be listed
Result<std::vector<KeptBundle>> list_kept_bundles(const Store& store);

struct RemoveOptions {
  std::unordered_set<Sha256Digest> pinned;  ///< a bundle that holds one stays
  bool manifests = false;                   ///< those too that are the bundle's alone
  bool dry_run = false;
};

struct RemovedBundle {
  std::vector<std::string> manifests;  ///< paths of those that went with it
  std::size_t kernels_elsewhere = 0;   ///< that an entry or another bundle serves still
};

/// Removes a bundle of the writable layer, by the rules of collect_garbage(): not one that somebody
/// serves from, nor one with a pinned kernel. Manifests of the same text in manifests/ of that
/// layer go first, so that whoever is stopped in between has no manifest without kernels.
///
/// all     what list_kept_bundles() gave
/// errors  kInvalidArgument: in a layer that is only read, or pinned. kIo: in use, or it cannot be
///         removed
Result<RemovedBundle> remove_kept_bundle(const Store& store, const KeptBundle& one,
                                         const std::vector<KeptBundle>& all,
                                         const RemoveOptions& options);

}  // namespace cubist::bundle
