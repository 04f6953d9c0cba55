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
/// are; those left over are paired by name, in the manifests' order.
struct ManifestDiff {
  std::vector<DiffEntry> added;
  std::vector<DiffEntry> removed;
  std::vector<DiffPair> other_bytes;   ///< the same name, another digest
  std::vector<DiffPair> other_traits;  ///< the same name and digest, other traits
  std::size_t unchanged = 0;

  bool empty() const {
    return added.empty() && removed.empty() && other_bytes.empty() && other_traits.empty();
  }
};

/// The result points into both manifests.
ManifestDiff diff_manifests(const Manifest& before, const Manifest& after);

/// The traits in which two kernels differ: "smem 64656 -> 64672, threads 512 -> 384".
std::string trait_differences(const KernelTraits& before, const KernelTraits& after);

}  // namespace cubist
