#include "registry/staged_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <system_error>

#include "base/hex.h"
#include "base/log.h"
#include "registry/store_file.h"

namespace cubist {
namespace {

constexpr std::string_view kSuffix = ".part";
constexpr std::string_view kResumeSuffix = ".resume";
// Where locks do not work, a file nobody wrote to for this long has no writer any more: far longer
// than the largest artifact takes. Unit: seconds.
constexpr std::time_t kStaleWithoutLockSeconds = 24 * 60 * 60;

std::string unique_name() {
  std::array<std::uint8_t, 12> random{};
  // Only fails before the kernel's pool is ready; the name then still has pid and address in it.
  [[maybe_unused]] const ssize_t got = ::getrandom(random.data(), random.size(), GRND_NONBLOCK);
  return fmt::format("{}-{}{}", ::getpid(), to_hex(random), kSuffix);
}

/// True unless a sweeper took the file between its creation and its lock.
bool lock_as_writer(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
  struct stat info {};
  return ::fstat(fd, &info) == 0 && info.st_nlink > 0;
}

/// A regular file, for read and write where possible (NFS wants that for an exclusive lock); a
/// sealed file is read-only. An invalid descriptor for anything else.
UniqueFd open_for_lock(int folder, const char* name) {
  constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(::openat(folder, name, O_RDWR | kFlags));
  if (!fd.valid() && errno == EACCES) fd = UniqueFd(::openat(folder, name, O_RDONLY | kFlags));
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return UniqueFd();
  return fd;
}

bool is_old(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && ::time(nullptr) - info.st_mtime > kStaleWithoutLockSeconds;
}

bool is_stale(int fd) {
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;
  return errno != EWOULDBLOCK && is_old(fd);
}

/// As renameat2(2) with RENAME_NOREPLACE. The raw call: musl and old glibc lack the wrapper.
int rename_new(int from_folder, const char* from, int to_folder, const char* to) {
  return static_cast<int>(
      ::syscall(SYS_renameat2, from_folder, from, to_folder, to, RENAME_NOREPLACE));
}

bool rename_to_free_name(int folder, const char* from, const char* to) {
  if (rename_new(folder, from, folder, to) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  // Plain rename() replaces no folder that has something in it.
  return ::renameat(folder, from, folder, to) == 0;
}

}  // namespace

Error store_write_error(std::string_view what, const std::string& path, int error_number,
                        std::uint64_t needed_bytes) {
  const std::string reason = std::generic_category().message(error_number);
  std::string advice;
  if (error_number == ENOSPC || error_number == EDQUOT) {
    struct statvfs space {};
    const std::string folder = path.substr(0, path.rfind('/'));
    if (needed_bytes != 0 && ::statvfs(folder.c_str(), &space) == 0) {
      advice = fmt::format("{} bytes are needed, {} are free; ", needed_bytes,
                           static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize);
    }
    advice += "make room there, or set CUBIST_STORE (or --store) to a folder on another disk";
  } else if (error_number == ENOTDIR) {
    advice =
        "a file or a link stands where a folder belongs: remove it, or set CUBIST_STORE (or "
        "--store) to "
        "another folder";
  } else if (error_number == EISDIR || error_number == ENOTEMPTY) {
    advice = "something else has that name: remove it, and run the command again";
  } else {
    advice = "set CUBIST_STORE (or --store) to a folder that can be written";
  }
  return Error(StatusCode::kIo, fmt::format("{} '{}': {}; {}", what, path, reason, advice));
}

Result<StagedFile> StagedFile::create(const std::string& folder, int depth) {
  constexpr int kTries =
      100;  // a name clash or a sweeper in the gap; neither happens twice in a row
  std::string path;
  for (int i = 0; i < kTries; ++i) {
    path = folder + "/" + unique_name();
    UniqueFd fd = open_in_store(path, depth, O_RDWR | O_CREAT | O_EXCL, 0666);
    if (!fd.valid()) {
      if (errno == EEXIST) continue;
      return tl::unexpected<Error>(store_write_error("cannot create", path, errno));
    }
    if (lock_as_writer(fd.get())) return StagedFile(std::move(path), depth, std::move(fd));
    unlink_in_store(path, depth);
  }
  return fail(StatusCode::kIo, "cannot create a temporary file in '{}': {} names were taken",
              folder, kTries);
}

StagedFile::StagedFile(StagedFile&& other) noexcept
    : path_(std::exchange(other.path_, {})), depth_(other.depth_), fd_(std::move(other.fd_)) {}

StagedFile& StagedFile::operator=(StagedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(depth_, other.depth_);
  std::swap(fd_, other.fd_);
  return *this;
}

StagedFile::~StagedFile() {
  // A failure here costs nothing but space until the next sweep.
  if (!path_.empty()) unlink_in_store(path_, depth_);
}

Status StagedFile::write(std::span<const std::uint8_t> bytes) {
  const std::uint64_t needed = bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return tl::unexpected<Error>(store_write_error("cannot write", path_, errno, needed));
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status StagedFile::make_read_only() {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0 || ::fchmod(fd_.get(), info.st_mode & 0444) != 0) {
    return tl::unexpected<Error>(store_write_error("cannot set the mode of", path_, errno));
  }
  return {};
}

Status StagedFile::sync() {
  if (::fsync(fd_.get()) != 0) {
    return tl::unexpected<Error>(store_write_error("cannot sync", path_, errno));
  }
  return {};
}

Result<StagedFile::Published> StagedFile::publish_new(const std::string& target, int depth) {
  const UniqueFd from = open_folder_of(path_, depth_);
  const UniqueFd to = from.valid() ? open_folder_of(target, depth) : UniqueFd();
  if (!to.valid()) {
    return tl::unexpected<Error>(
        store_write_error("cannot rename a finished file to", target, errno));
  }
  if (rename_new(from.get(), file_name_of(path_), to.get(), file_name_of(target)) == 0) {
    path_.clear();
    return Published::kYes;
  }
  if (errno == EEXIST) return Published::kTargetExists;
  if (errno != EINVAL && errno != ENOSYS) {
    return tl::unexpected<Error>(
        store_write_error("cannot rename a finished file to", target, errno));
  }
  // File systems without that flag (NFS among them) have hard links, which refuse a taken name too.
  if (::linkat(from.get(), file_name_of(path_), to.get(), file_name_of(target), 0) == 0) {
    ::unlinkat(from.get(), file_name_of(path_), 0);
    path_.clear();
    return Published::kYes;
  }
  if (errno == EEXIST) return Published::kTargetExists;
  CUBIST_RETURN_IF_ERROR(publish_over(target, depth));
  return Published::kYes;
}

Status StagedFile::publish_over(const std::string& target, int depth) {
  const UniqueFd from = open_folder_of(path_, depth_);
  const UniqueFd to = from.valid() ? open_folder_of(target, depth) : UniqueFd();
  const auto rename = [&] {
    return to.valid() &&
           ::renameat(from.get(), file_name_of(path_), to.get(), file_name_of(target)) == 0;
  };
  if (!rename()) {
    if (errno != EISDIR) {
      return tl::unexpected<Error>(
          store_write_error("cannot rename a finished file to", target, errno));
    }
    CUBIST_RETURN_IF_ERROR(put_folder_aside(target, depth));
    if (!rename()) {
      return tl::unexpected<Error>(
          store_write_error("cannot rename a finished file to", target, errno));
    }
  }
  path_.clear();
  return {};
}

Status put_folder_aside(const std::string& path, int depth) {
  constexpr int kNames = 100;
  const UniqueFd folder = open_folder_of(path, depth);
  const std::string name = file_name_of(path);
  if (folder.valid() && ::unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) == 0) {
    log(LogLevel::kWarning, "removed the empty folder '{}', where a store entry belongs", path);
    return {};
  }
  for (int i = 1; i <= kNames && (errno == ENOTEMPTY || errno == EEXIST); ++i) {
    const std::string suffix = i == 1 ? ".aside" : fmt::format(".aside-{}", i);
    // The slash at the end: should a file have come to that name, it is left alone.
    if (rename_to_free_name(folder.get(), (name + "/").c_str(), (name + suffix).c_str())) {
      log(LogLevel::kWarning, "moved the folder '{}', where a store entry belongs, to '{}{}'", path,
          path, suffix);
      return {};
    }
  }
  return fail(StatusCode::kIo,
              "a folder is where the store entry '{}' belongs, and it cannot be moved aside: {}; "
              "remove that folder and run the command again",
              path, std::generic_category().message(errno));
}

std::size_t sweep_stale_files(const std::string& folder, int depth) {
  UniqueFd opened = depth == 0
                        ? UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC))
                        : open_in_store(folder, depth, O_RDONLY | O_DIRECTORY);
  if (!opened.valid()) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(opened.get()), &::closedir);
  if (listing == nullptr) return 0;
  const int fd_of_folder = opened.release();  // the listing's now
  std::size_t removed = 0;
  while (const dirent* entry = ::readdir(listing.get())) {
    const std::string_view name(entry->d_name);
    // What a stopped run left for the next one has no writer; it is of use for a while.
    const bool resume = name.ends_with(kResumeSuffix);
    if (!resume && !name.ends_with(kSuffix)) continue;
    const UniqueFd fd = open_for_lock(fd_of_folder, entry->d_name);
    if (!fd.valid() || !(resume ? is_old(fd.get()) : is_stale(fd.get()))) continue;
    if (::unlinkat(fd_of_folder, entry->d_name, 0) == 0) ++removed;
  }
  if (removed != 0) log(LogLevel::kInfo, "removed {} unfinished files from '{}'", removed, folder);
  return removed;
}

Status sync_folder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() && errno == EACCES) return {};  // a parent that may be passed but not read
  if (!fd.valid()) return tl::unexpected<Error>(store_write_error("cannot open", path, errno));
  // EINVAL and ENOTSUP: a file system that has no such notion.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) {
    return tl::unexpected<Error>(store_write_error("cannot sync", path, errno));
  }
  return {};
}

namespace {

/// One folder below a root, in place of which no link is taken.
Status make_folder_in_store(const std::string& path, int depth) {
  if (open_in_store(path, depth, O_PATH | O_DIRECTORY).valid()) return {};
  const std::string above = path.substr(0, path.rfind('/'));
  CUBIST_RETURN_IF_ERROR(make_folders(above, depth - 1));
  const UniqueFd folder = open_folder_of(path, depth);
  if (folder.valid() && ::mkdirat(folder.get(), file_name_of(path), 0777) == 0) {
    return sync_folder(above);
  }
  if (folder.valid() && errno == EEXIST) {  // made by another meanwhile, or no folder
    if (open_in_store(path, depth, O_PATH | O_DIRECTORY).valid()) return {};
    errno = ENOTDIR;
  }
  return tl::unexpected<Error>(store_write_error("cannot create the folder", path, errno));
}

}  // namespace

Status make_folders(const std::string& path, int depth) {
  if (depth > 0) return make_folder_in_store(path, depth);
  if (::mkdir(path.c_str(), 0777) == 0) return sync_folder(path.substr(0, path.rfind('/') + 1));
  if (errno == EEXIST) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) return {};
    return tl::unexpected<Error>(store_write_error("cannot create the folder", path, ENOTDIR));
  }
  const std::size_t slash = path.rfind('/');
  if (errno != ENOENT || slash == 0 || slash == std::string::npos) {
    return tl::unexpected<Error>(store_write_error("cannot create the folder", path, errno));
  }
  CUBIST_RETURN_IF_ERROR(make_folders(path.substr(0, slash)));
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
    return tl::unexpected<Error>(store_write_error("cannot create the folder", path, errno));
  }
  return sync_folder(path.substr(0, slash));
}

}  // namespace cubist
