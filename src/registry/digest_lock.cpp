#include "registry/digest_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/log.h"
#include "registry/staged_file.h"
#include "registry/store_file.h"

namespace cubist {
namespace {

off_t byte_of(const Sha256Digest& digest) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value = value << 8 | digest.bytes[static_cast<std::size_t>(i)];
  // Two bits less: some file systems stop at 2^63 and add the length.
  return static_cast<off_t>(value >> 2);
}

/// Open-file-description locks: unlike plain POSIX locks they exclude other threads of this process
/// that opened the file themselves, and closing some other descriptor does not drop them.
int set_lock(int fd, short type, const Sha256Digest& digest) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte_of(digest);
  lock.l_len = 1;
  int result = 0;
  do {
    result = ::fcntl(fd, F_OFD_SETLK, &lock);
  } while (result != 0 && errno == EINTR);
  return result;
}

/// An invalid descriptor, with errno, for anything but a regular file.
UniqueFd open_lock_file(const std::string& path) {
  UniqueFd fd = open_in_store(path, 1, O_RDWR | O_CREAT, 0666);
  struct stat info {};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return UniqueFd();
  if (S_ISREG(info.st_mode)) return fd;
  errno = EINVAL;
  return UniqueFd();
}

}  // namespace

DigestLocks::DigestLocks(const std::string& store_root) : path_(store_root + "/lock") {}

DigestLocks::Outcome DigestLocks::try_take(const Sha256Digest& digest) {
  int error_number = 0;
  if (!opened_) {
    opened_ = true;
    // A root that cannot be made is reported by the install that follows.
    const Status made = make_folders(path_.substr(0, path_.rfind('/')));
    if (made) fd_ = open_lock_file(path_);
    error_number = made ? errno : EACCES;
  }
  if (fd_.valid()) {
    if (set_lock(fd_.get(), F_WRLCK, digest) == 0) return Outcome::kTaken;
    if (errno == EAGAIN || errno == EACCES) return Outcome::kBusy;
    error_number = errno;
    fd_ = UniqueFd();
  }
  if (!warned_) {
    // A store that cannot be written is reported by the install that follows.
    const bool no_locks = error_number == ENOLCK || error_number == ENOSYS ||
                          error_number == EOPNOTSUPP || error_number == EINVAL;
    log(no_locks ? LogLevel::kWarning : LogLevel::kInfo,
        "'{}' cannot be locked ({}): several processes may fetch the same file", path_,
        std::generic_category().message(error_number));
    warned_ = true;
  }
  return Outcome::kUnavailable;
}

void DigestLocks::release(const Sha256Digest& digest) {
  // Nothing to be done about a failure: closing the file drops the lock.
  if (fd_.valid()) set_lock(fd_.get(), F_UNLCK, digest);
}

}  // namespace cubist
