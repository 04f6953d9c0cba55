#include "runtime/manifest_path.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/ranges.h>

#include "base/environment.h"
#include "base/secrets.h"
#include "registry/store_layout.h"

namespace cubist::runtime {
namespace {

namespace fs = std::filesystem;

/// The folder of the shared library or program this code is linked into; empty if it is unknown.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  std::error_code error;
  fs::path file = fs::canonical(info.dli_fname, error);
  // A program started by its bare name is known by that name alone.
  if (error) file = fs::canonical("/proc/self/exe", error);
  return error ? fs::path() : file.parent_path();
}

void add_environment(std::vector<std::string>& folders) {
  for (std::string& folder : environment_list("CUBIST_MANIFESTS", ":")) {
    folders.push_back(std::move(folder));
  }
}

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

/// Those of this program's own package and, in a build tree, of the source tree.
void add_own(std::vector<std::string>& folders) {
  const fs::path start = own_folder();
  // <prefix>/bin or <prefix>/lib, or <prefix>/lib/<triplet>.
  for (const char* up : {"..", "../.."}) {
    folders.push_back((start / up / "share/cubist/manifests").lexically_normal().string());
  }
  // Where this build installs to: for a static library inside somebody else's program.
  folders.emplace_back(CUBIST_INSTALLED_MANIFESTS);
  // A build tree lies somewhere in its source tree; src/LAYERS marks the latter.
  for (fs::path above = start; above != above.parent_path(); above = above.parent_path()) {
    if (is_file(above / "src/LAYERS")) folders.push_back((above / "manifests").string());
  }
}

/// Where bundles put theirs: behind all others, so that who can write a store, which need be
/// trusted for nothing, cannot change what a name means that is known without it.
void add_stores(std::string_view store_dir, std::vector<std::string>& folders) {
  const auto stores = store_options_from_environment(store_dir);
  if (!stores) return;  // no home folder, no store
  folders.push_back(installed_manifest_folder(stores->root));
  for (const std::string& root : stores->base_roots) {
    folders.push_back(installed_manifest_folder(root));
  }
}

/// Below a store's root no link is followed: who can write there could lead it anywhere.
bool is_linked_in_store(const fs::path& file, const std::vector<std::string>& store_folders) {
  const bool in_store =
      std::any_of(store_folders.begin(), store_folders.end(),
                  [&](const auto& folder) { return file.parent_path() == folder; });
  std::error_code error;
  return in_store && (fs::is_symlink(file.parent_path(), error) || fs::is_symlink(file, error));
}

}  // namespace

std::vector<std::string> manifest_folders(std::string_view store_dir) {
  std::vector<std::string> folders;
  add_environment(folders);
  add_own(folders);
  add_stores(store_dir, folders);
  return folders;
}

bool is_shipped(const std::string& path) {
  std::error_code error;
  const fs::path file = fs::canonical(path, error);
  if (error) return false;
  std::vector<std::string> folders;
  add_own(folders);
  const bool in_package = std::any_of(folders.begin(), folders.end(), [&](const auto& folder) {
    return fs::canonical(folder, error) == file.parent_path() && !error;
  });
  if (!in_package) return false;
  // Whoever else could have put it there is not the one who installed the program.
  struct stat info {};
  return ::stat(file.c_str(), &info) == 0 && (info.st_uid == 0 || info.st_uid == ::geteuid()) &&
         (info.st_mode & S_IWOTH) == 0;
}

Result<std::string> find_manifest(std::string_view name, std::string_view store_dir) {
  if (name.empty()) return fail(StatusCode::kInvalidArgument, "a manifest's name is empty");
  if (name.find('/') != std::string_view::npos || name.ends_with(".json")) {
    return std::string(name);
  }
  const std::vector<std::string> folders = manifest_folders(store_dir);
  std::vector<std::string> store_folders;
  add_stores(store_dir, store_folders);
  for (const std::string& folder : folders) {
    const fs::path path = fs::path(folder) / fmt::format("{}.json", name);
    if (is_file(path) && !is_linked_in_store(path, store_folders)) return path.string();
  }
  const std::vector<std::string> shipped = shipped_manifests();
  std::vector<std::string> shown;
  for (const std::string& folder : folders) shown.push_back(shown_value(folder));
  return fail(
      StatusCode::kNotFound,
      "no shipped manifest is called '{}'; there is {}. Looked for {}.json in {}; give a file's "
      "path, or set CUBIST_MANIFESTS to the folder it lies in",
      name, shipped.empty() ? "none" : fmt::format("{}", fmt::join(shipped, ", ")), name,
      fmt::join(shown, ", "));
}

std::vector<std::string> shipped_manifests() {
  std::vector<std::string> names;
  std::vector<std::string> store_folders;
  add_stores({}, store_folders);
  for (const std::string& folder : manifest_folders()) {
    std::error_code error;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
      const fs::path& path = entry.path();
      if (path.extension() != ".json" || path.stem() == "schema") continue;
      if (!is_linked_in_store(path, store_folders)) names.push_back(path.stem());
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace cubist::runtime
