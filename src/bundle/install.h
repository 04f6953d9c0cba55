#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bundle/bundle.h"
#include "bundle/check_manifests.h"
#include "registry/store.h"

namespace cubist::bundle {

struct InstallProgress {
  std::size_t kernels_done = 0;
  std::size_t kernels_total = 0;
  std::uint64_t bytes_done = 0;  ///< of kernels, unpacked
  std::uint64_t bytes_total = 0;
};

struct InstallOptions {
  std::string manifest_folder;  ///< empty: manifests/ in the store
  std::string rename_to;        ///< another name for the only manifest; empty: its own
  bool replace = false;         ///< takes the place of another manifest of that name
  Checks checks;
  unsigned threads = 1;
  const std::atomic<bool>* cancel = nullptr;
  /// From the calling thread, ten times a second at most.
  std::function<void(const InstallProgress&)> progress;
};

struct InstalledManifest {
  std::string name;
  std::string path;
  bool was_present = false;  ///< the same bytes lay there already
};

struct InstallReport {
  std::vector<InstalledManifest> manifests;
  std::size_t kernels_installed = 0;
  std::size_t kernels_present = 0;
  std::uint64_t installed_bytes = 0;
};

/// Brings a bundle's kernels into the writable layer of a store, and then its manifests, which make
/// the kernels usable by name.
///
/// Before the first write: every manifest is held against its digest and by the checks, every
/// kernel is one that a manifest names with this size and that may come in, and no other manifest
/// has a wanted name. Kernels are then hashed one by one and published as in Store::install; those
/// that a layer has already, hashed again, stay. Manifests become visible last, each after its
/// signature, and only when all kernels are there. Stopped anywhere (kill -9 too), what is there is
/// right, and the same call goes on.
///
/// errors  kIntegrity: names the member. kInvalidArgument: a name that is taken, a name that is
///         none. kManifestInvalid, kIo, kInterrupted; those of the checks
Result<InstallReport> install(const Bundle& bundle, const Store& store,
                              const InstallOptions& options);

}  // namespace cubist::bundle
