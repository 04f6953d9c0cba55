#include "registry/bundle_shelf.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/log.h"
#include "registry/entry_file.h"
#include "registry/store_file.h"
#include "registry/store_layout.h"

namespace cubist {
namespace {

// A folder that changed just now may change again within the same tick of the file system's clock.
// Unit: seconds.
constexpr std::time_t kSettled = 2;

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         same_time(a.st_mtim, b.st_mtim) && same_time(a.st_ctim, b.st_ctim);
}

}  // namespace

struct BundleShelf::Known : BundleShelf::Layer {
  struct stat folder {};
  bool settled = false;
  std::map<std::string, struct stat> files;  ///< by path, as they were when they were opened
};

namespace {

/// What was opened before and is the same file still.
std::shared_ptr<const StoredBundle> find_open(
    const std::vector<std::shared_ptr<const StoredBundle>>& bundles, const std::string& path) {
  const auto at = std::find_if(bundles.begin(), bundles.end(),
                               [&](const auto& bundle) { return bundle->path() == path; });
  return at == bundles.end() ? nullptr : *at;
}

}  // namespace

Result<std::shared_ptr<const BundleShelf::Layer>> BundleShelf::layer(const std::string& root) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const Known> before = layers_[root];
  const std::string path = bundle_folder(root);
  const UniqueFd folder = open_in_store(path, 1, O_PATH | O_DIRECTORY);
  auto now = std::make_shared<Known>();
  if (!folder.valid()) {
    if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
      return tl::unexpected<Error>(store_read_error("cannot look into", path, errno));
    }
    layers_.erase(root);
    return now;
  }
  if (::fstat(folder.get(), &now->folder) != 0) {
    return tl::unexpected<Error>(store_read_error("cannot look into", path, errno));
  }
  if (before != nullptr && before->settled && same_file(before->folder, now->folder)) return before;
  now->settled = ::time(nullptr) - now->folder.st_mtim.tv_sec > kSettled;
  CUBIST_ASSIGN_OR_RETURN(const std::vector<std::string> names, names_in_store_folder(path, 1));
  for (const std::string& name : names) {
    const std::string file = fmt::format("{}/{}", path, name);
    if (!is_bundle_name(name)) {
      now->strangers.push_back(file);
      continue;
    }
    struct stat& info = now->files[file];
    if (::fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const auto known = before == nullptr ? nullptr : find_open(before->bundles, file);
    if (known != nullptr && same_file(before->files.at(file), info)) {
      now->bundles.push_back(known);
      continue;
    }
    auto opened = StoredBundle::open(file);
    if (opened) {
      now->bundles.push_back(std::move(*opened));
    } else if (opened.error().code() != StatusCode::kNotFound) {
      const bool broken = opened.error().code() == StatusCode::kIntegrity;
      now->settled = now->settled && broken;  // what cannot be opened now may be soon
      const bool told = before != nullptr && before->files.contains(file) &&
                        same_file(before->files.at(file), info);
      if (!told) {
        log(LogLevel::kWarning, "{} bundle in the store, passed over: {}; {}",
            broken ? "broken" : "unreadable", opened.error().message(),
            broken ? "install or pull it again, or remove the file"
                   : "the other bundles and entries serve");
      }
      now->broken.emplace_back(file, std::move(opened.error()));
    }
  }
  layers_[root] = now;
  return now;
}

}  // namespace cubist
