#include "runtime/cubin_provider.h"

#include "registry/fetch.h"

namespace cubist::runtime {

Result<VerifiedCubin> CubinProvider::get(const Manifest& manifest, const Pack& pack,
                                         const KernelRecord& record) const {
  FetchOptions options;
  options.offline = offline_;
  options.manifest_folder = manifest.folder;
  // A store on a read-only file system must not keep a kernel from being launched.
  options.memory_if_unwritable = true;
  return open_or_fetch(store_, {&pack, &record}, options);
}

}  // namespace cubist::runtime
