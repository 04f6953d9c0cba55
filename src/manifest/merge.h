#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"
#include "manifest/manifest.h"

namespace cubist {

struct MergedManifest {
  Manifest manifest;
  std::size_t dropped = 0;  ///< records that an earlier manifest had already (digest and traits)
};

/// One manifest with the kernels of all, in order. Packs that agree in name, version, family,
/// revision, parameter layout and min_driver become one; a pack whose name alone is taken gets its
/// version behind the name, or, where only min_driver differs, "-driver-" and that, and the sources
/// of both are both's. A kernel whose bytes are in packs of different min_driver is in one with the
/// highest: what one publisher knows of them holds. Relative locations of sources are made absolute
/// (or relative to where the command runs, as the manifests' own folders are).
///
/// errors  kManifestInvalid: the result breaks a rule, such as one path for two artifacts
Result<MergedManifest> merge_manifests(std::span<const Manifest> manifests,
                                       const std::string& name);

/// Every location of a folder or file that is relative to manifest.folder, as one that stands
/// alone.
void resolve_locations(Manifest& manifest);

}  // namespace cubist
