#pragma once

#include <vector>

#include "manifest/manifest.h"

namespace cubist {

/// A kernel and the pack it is in. Both belong to the manifest that was compared.
struct DiffEntry {
  const Pack* pack = nullptr;
  const KernelRecord* record = nullptr;
};

struct DiffPair {
  DiffEntry before;
  DiffEntry after;
};

/// What became of the kernels of one manifest in another. Records are equal if digest and traits
/// are; those left over are paired by name, in the manifests' order. What their packs say of the
/// driver is compared too.
struct ManifestDiff {
  std::vector<DiffEntry> added;
  std::vector<DiffEntry> removed;
  std::vector<DiffPair> other_bytes;       ///< the same name, another digest
  std::vector<DiffPair> other_traits;      ///< the same name and digest, other traits
  std::vector<DiffPair> other_min_driver;  ///< the same digest and traits, another min_driver
  std::size_t unchanged = 0;

  bool empty() const {
    return added.empty() && removed.empty() && other_bytes.empty() && other_traits.empty() &&
           other_min_driver.empty();
  }
};

/// The result points into both manifests.
ManifestDiff diff_manifests(const Manifest& before, const Manifest& after);

/// The traits in which two kernels differ: "smem 64656 -> 64672, threads 512 -> 384".
std::string trait_differences(const KernelTraits& before, const KernelTraits& after);

/// "min_driver 12.0 -> 13.0", "none" where it is not said; empty if both need the same.
std::string min_driver_difference(const DiffPair& pair);

}  // namespace cubist
