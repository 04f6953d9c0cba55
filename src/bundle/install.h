#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "bundle/bundle.h"
#include "bundle/check_manifests.h"
#include "bundle/place_manifest.h"
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
  bool unpack = false;          ///< an entry of each kernel, in place of the bundle's file
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
  std::size_t kernels_installed = 0;  ///< that were not there before
  std::size_t kernels_present = 0;
  std::uint64_t installed_bytes = 0;  ///< written: of entries, or of the bundle's file
  std::string bundle_path;            ///< where that lies; empty: there is none
};

/// What is to be done with a bundle's manifests, checked before the first write.
struct Admission {
  std::vector<ManifestPlace> places;
  std::string folder;
  std::string staging;
};

/// Looks whether a bundle may come in: every manifest is held against its digest and by the checks,
/// every kernel is one that a manifest names with this size and that may come in, and no other
/// manifest has a wanted name. Writes nothing; reads no kernel. The bundle must outlive the result.
///
/// errors  kIntegrity: names the member. kInvalidArgument: a name that is taken, a name that is
///         none. kManifestInvalid, kIo; those of the checks
Result<Admission> admit(const Bundle& bundle, const Store& store, const InstallOptions& options);

/// Writes the manifests that are not there yet, without their names: may be done while kernels
/// come. One for each of the admission's places. errors  kIo
Result<std::vector<StagedManifest>> stage_manifests(const Admission& admission);

/// Makes the manifests visible, each after its signature: the last step, once all kernels are
/// there. errors  kIo
Status put_manifests(std::vector<StagedManifest> staged, const Admission& admission,
                     const InstallOptions& options, InstallReport& report);

/// Brings a bundle into the writable layer of a store, and then its manifests, which make the
/// kernels usable by name.
///
/// After admit(), the file is kept as it is (keep_bundle.h), or, with `unpack`, every kernel is
/// hashed and published as in Store::install; those that a layer has already as entries, hashed
/// again, stay. Manifests become visible last. Stopped anywhere (kill -9 too), what is there is
/// right, and the same call goes on.
///
/// errors  those of admit(); kIntegrity: names the member; kIo, kInterrupted
Result<InstallReport> install(const Bundle& bundle, const Store& store,
                              const InstallOptions& options);

}  // namespace cubist::bundle
