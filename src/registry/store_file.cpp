#include "registry/store_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string_view>

#include "registry/entry_file.h"

namespace cubist {

UniqueFd open_folder_of(const std::string& path, int depth) {
  std::size_t end = path.size();  // of the way to the folder below which no link is followed
  int steps = 0;
  for (; steps < depth && end != std::string::npos && end > 0; ++steps) {
    end = path.rfind('/', end - 1);
  }
  const std::string root = end == std::string::npos ? "." : path.substr(0, end == 0 ? 1 : end);
  UniqueFd folder(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::size_t begin = end == std::string::npos ? 0 : end + 1;
  for (int i = 1; i < steps && folder.valid(); ++i) {
    const std::size_t slash = path.find('/', begin);
    const std::string name = path.substr(begin, slash - begin);
    folder = UniqueFd(
        ::openat(folder.get(), name.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    begin = slash + 1;
  }
  return folder;
}

const char* file_name_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
}

UniqueFd open_in_store(const std::string& path, int depth, int flags, mode_t mode) {
  const UniqueFd folder = open_folder_of(path, depth);
  if (!folder.valid()) return UniqueFd();
  // O_NONBLOCK: a FIFO must not make us wait. It has no effect on regular files.
  return UniqueFd(::openat(folder.get(), file_name_of(path),
                           flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, mode));
}

int unlink_in_store(const std::string& path, int depth) {
  const UniqueFd folder = open_folder_of(path, depth);
  return folder.valid() ? ::unlinkat(folder.get(), file_name_of(path), 0) : -1;
}

Result<std::vector<std::string>> names_in_store_folder(const std::string& folder, int depth) {
  std::vector<std::string> names;
  UniqueFd opened = open_in_store(folder, depth, O_RDONLY | O_DIRECTORY);
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(
      opened.valid() ? ::fdopendir(opened.get()) : nullptr,
      [](DIR* open) { return open == nullptr ? 0 : ::closedir(open); });
  if (listing != nullptr) opened.release();  // the listing's now
  if (listing == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return names;
    return tl::unexpected<Error>(store_read_error("cannot list", folder, errno));
  }
  for (errno = 0; const dirent* entry = ::readdir(listing.get()); errno = 0) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  // A listing that breaks off must not look like a store with less in it.
  if (errno != 0 && errno != ENOENT) {
    return tl::unexpected<Error>(store_read_error("cannot list", folder, errno));
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<std::uint8_t>> read_in_store(const std::string& path, int depth,
                                                std::uint64_t max_bytes) {
  const UniqueFd fd = open_in_store(path, depth, O_RDONLY);
  if (!fd.valid()) return tl::unexpected<Error>(errno_error("cannot open", path, errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return tl::unexpected<Error>(errno_error("cannot inspect", path, errno));
  }
  if (!S_ISREG(info.st_mode)) return fail(StatusCode::kIo, "'{}' is not a regular file", path);
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > max_bytes) {
    return fail(StatusCode::kIntegrity, "'{}' has {} bytes; at most {} are accepted here", path,
                size, max_bytes);
  }
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
  CUBIST_RETURN_IF_ERROR(read_exactly_at(fd, 0, bytes, path));
  return bytes;
}

}  // namespace cubist
