#include "oci/staged_bundle.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>
#include <vector>

#include "base/log.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"

namespace cubist::oci {
namespace {

constexpr std::chrono::milliseconds kLookEvery{100};
constexpr std::size_t kBlockBytes = 1 << 20;
// Holes begin at pages; the last page before one may be half written. Unit: bytes.
constexpr std::uint64_t kPageBytes = 64 * 1024;

enum class Locked : std::uint8_t { kYes, kBusy, kGone };

/// Where locks do not work, two writers may meet; each hashes what it uses, so both end well.
Locked lock(int fd, const std::string& path) {
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return Locked::kBusy;
  struct stat mine {};
  struct stat named {};
  const bool same = ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &named) == 0 &&
                    mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
  return same ? Locked::kYes : Locked::kGone;  // removed, or given its name, by who had it before
}

bool has_other_names(int fd) {
  struct stat info {};
  return ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink > 1;
}

tl::unexpected<Error> write_failure(std::string_view what, const std::string& path, int code) {
  const std::string_view advice = code == ENOSPC || code == EDQUOT
                                      ? "make room there, or choose a place on another disk"
                                      : "choose a place that can be written";
  return fail(StatusCode::kIo, "{} '{}': {}; {}", what, path, std::generic_category().message(code),
              advice);
}

/// Why a file that is to hold an unfinished pull could not be opened.
tl::unexpected<Error> open_failure(const std::string& path, int depth, int code) {
  struct stat info {};
  const UniqueFd folder = open_folder_of(path, depth);
  const bool there = folder.valid() &&
                     ::fstatat(folder.get(), file_name_of(path), &info, AT_SYMLINK_NOFOLLOW) == 0;
  if (!there || S_ISREG(info.st_mode)) return write_failure("cannot create", path, code);
  const std::string_view kind = S_ISDIR(info.st_mode)   ? "a folder"
                                : S_ISLNK(info.st_mode) ? "a symbolic link, which is not followed,"
                                                        : "no regular file";
  return fail(StatusCode::kIo,
              "'{}' is {} in the place of the file that an unfinished pull is kept in; move or "
              "remove it, or pull to another place",
              path, kind);
}

Status set_size(int fd, const std::string& path, std::uint64_t file_bytes) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return fail(StatusCode::kIo,
                "'{}' is no regular file in the place of the file that an unfinished pull is kept "
                "in; move or remove it, or pull to another place",
                path);
  }
  if (static_cast<std::uint64_t>(info.st_size) == file_bytes) return {};
  if (::ftruncate(fd, 0) != 0 || ::ftruncate(fd, static_cast<off_t>(file_bytes)) != 0) {
    return write_failure("cannot set the size of", path, errno);
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<StagedBundle>> StagedBundle::open(const std::string& path,
                                                         std::uint64_t file_bytes,
                                                         const std::atomic<bool>* cancel,
                                                         int depth) {
  for (bool told = false;;) {
    UniqueFd fd = open_in_store(path, depth, O_RDWR | O_CREAT, 0666);
    if (!fd.valid()) return open_failure(path, depth, errno);
    const Locked locked = lock(fd.get(), path);
    if (locked == Locked::kGone) continue;
    if (locked == Locked::kYes && has_other_names(fd.get())) {
      // Written through, it would change a file that is not ours to write.
      if (unlink_in_store(path, depth) != 0) return write_failure("cannot remove", path, errno);
      continue;
    }
    if (locked == Locked::kYes) {
      CUBIST_RETURN_IF_ERROR(set_size(fd.get(), path, file_bytes));
      return std::shared_ptr<StagedBundle>(new StagedBundle(path, depth, std::move(fd)));
    }
    if (!told) log(LogLevel::kInfo, "'{}': waiting for another process that pulls it", path);
    told = true;
    if (cancel != nullptr && *cancel) return fail(StatusCode::kInterrupted, "interrupted");
    std::this_thread::sleep_for(kLookEvery);
  }
}

std::shared_ptr<StagedBundle> StagedBundle::open_finished(const std::string& path, int depth,
                                                          std::uint64_t file_bytes) {
  UniqueFd fd = open_in_store(path, depth, O_RDONLY);
  struct stat info {};
  const bool there = fd.valid() && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) &&
                     static_cast<std::uint64_t>(info.st_size) == file_bytes;
  if (!there) return nullptr;
  return std::shared_ptr<StagedBundle>(new StagedBundle(path, depth, std::move(fd)));
}

std::uint64_t StagedBundle::filled(std::uint64_t offset, std::uint64_t length) const {
  const off_t hole = ::lseek(fd_.get(), static_cast<off_t>(offset), SEEK_HOLE);
  if (hole < 0) return 0;
  const auto end = static_cast<std::uint64_t>(hole);
  if (end >= offset + length) return length;
  const std::uint64_t there = end - std::min(end, offset);
  return there - std::min(there, kPageBytes);
}

bool StagedBundle::holds_anything() const { return ::lseek(fd_.get(), 0, SEEK_DATA) >= 0; }

Status StagedBundle::hash(std::uint64_t offset, std::uint64_t length, Sha256& hasher) const {
  std::vector<std::uint8_t> block(
      static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, length)));
  for (std::uint64_t at = 0; at < length;) {
    const std::span<std::uint8_t> part(
        block.data(), static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), length - at)));
    CUBIST_RETURN_IF_ERROR(read_exactly_at(fd_, offset + at, part, path_));
    hasher.update(part);
    at += part.size();
  }
  return {};
}

Status StagedBundle::write(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return write_failure("cannot write", path_, errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status StagedBundle::make_read_only() {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0 || ::fchmod(fd_.get(), info.st_mode & 0444) != 0) {
    return write_failure("cannot set the mode of", path_, errno);
  }
  return {};
}

Status StagedBundle::sync() {
  if (::fsync(fd_.get()) != 0) return write_failure("cannot sync", path_, errno);
  return {};
}

Status StagedBundle::publish(const std::string& target, int depth) {
  CUBIST_RETURN_IF_ERROR(sync());
  const UniqueFd from = open_folder_of(path_, depth_);
  const UniqueFd to = open_folder_of(target, depth);
  if (!from.valid() || !to.valid() ||
      ::renameat(from.get(), file_name_of(path_), to.get(), file_name_of(target)) != 0) {
    return write_failure("cannot give the finished file the name", target, errno);
  }
  const std::size_t slash = target.rfind('/');
  return sync_folder(slash == std::string::npos ? "." : target.substr(0, slash + 1));
}

void StagedBundle::remove() {
  // A failure here costs nothing but space until the next sweep.
  unlink_in_store(path_, depth_);
}

Status PieceSink::begin() {
  hasher_ = Sha256();
  at_ = have_;
  return file_.hash(offset_, have_, hasher_);
}

Status PieceSink::write(std::span<const std::uint8_t> bytes) {
  hasher_.update(bytes);
  CUBIST_RETURN_IF_ERROR(file_.write(offset_ + at_, bytes));
  at_ += bytes.size();
  progress_.add(bytes.size());
  return {};
}

}  // namespace cubist::oci
