#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "bundle/install.h"

namespace cubist::bundle {

/// What a store has of a bundle's kernels, judged by size.
struct Supply {
  std::vector<std::size_t> missing;  ///< by index
  std::set<std::string> places;      ///< entries and bundles that serve the others
};

/// as_entries  a kernel that lies in another bundle of the store counts as missing too
/// errors      kIo: a layer cannot be looked into
Result<Supply> look_for_kernels(const Bundle& bundle, const Store& store, bool as_entries);

/// The bundle's file as it is into the writable layer, at bundle_path(), unless the store has every
/// kernel: then what serves them counts as used now (registry/store_use.h). It is copied, every
/// kernel of the copy is hashed, and only then has it its name, durably. A file of that name that
/// is broken is replaced. Counts in `report`.
///
/// errors  kIntegrity: names the member; kIo, kInterrupted. Nothing is left then
Status keep_bundle(const Bundle& bundle, const Store& store, const InstallOptions& options,
                   InstallReport& report);

/// What keeping it at `path` comes to, where so many kernels were missing.
void report_kept(const Bundle& bundle, std::size_t missing, const std::string& path,
                 InstallReport& report);

}  // namespace cubist::bundle
