#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "manifest/manifest.h"
#include "selector/kernel_table.h"

namespace cubist::tools {

/// Manifests read from files and the table over their kernels, in the order given.
struct OpenedManifests {
  std::vector<Manifest> manifests;  ///< the table points into these: never moved once it is built
  selector::KernelTable table;

  std::size_t num_kernels() const;
};

/// `names`: files, or names of shipped manifests. `barred`: "HASH" or "HASH=reason" each.
/// errors  as load_manifest; kInvalidArgument for a hash that is none,
///         that no kernel has or that is barred twice, and for a manifest that is given twice
Result<OpenedManifests> open_manifests(const std::vector<std::string>& names,
                                       const std::vector<std::string>& barred);

}  // namespace cubist::tools
