#include "registry/store_use.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "registry/store_file.h"

namespace cubist {

void record_use(const Store& store, const std::set<std::string>& paths) {
  const std::string own = store.root() + "/";
  const std::string bundles = bundle_folder(store.root()) + "/";
  for (const std::string& path : paths) {
    if (!path.starts_with(own)) continue;
    const int depth = path.starts_with(bundles) ? kStoreFileDepth : kEntryDepth;
    const UniqueFd fd = open_in_store(path, depth, O_RDONLY);
    if (fd.valid() && ::futimens(fd.get(), nullptr) == 0) continue;
    log(LogLevel::kInfo, "'{}' is used, which could not be noted: {}; gc counts it as older", path,
        std::strerror(errno));
  }
}

}  // namespace cubist
