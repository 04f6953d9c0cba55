#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <type_traits>

#include "base/secrets.h"

namespace cubist {
namespace {

/// Reads up to out.size() bytes; fewer only at the end of the file.
Result<std::size_t> read_some_at(const UniqueFd& fd, std::uint64_t offset,
                                 std::span<std::uint8_t> out, const std::string& path) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got =
        ::pread(fd.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected<Error>(errno_error("cannot read", path, errno));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

template <class Container>
Result<Container> read_whole(const std::string& path, std::uint64_t max_bytes) {
  CUBIST_ASSIGN_OR_RETURN(const UniqueFd fd, open_regular_file(path));
  CUBIST_ASSIGN_OR_RETURN(const std::uint64_t size, file_size(fd, path));
  if (size > max_bytes) {
    return fail(StatusCode::kIntegrity, "'{}' has {} bytes; at most {} are accepted here", path,
                size, max_bytes);
  }
  Container bytes;
  if constexpr (std::is_same_v<Container, std::string>) {
    bytes.reserve(static_cast<std::size_t>(size) + kRoomBehindText);
  }
  bytes.resize(static_cast<std::size_t>(size));
  CUBIST_RETURN_IF_ERROR(
      read_exactly_at(fd, 0, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}, path));
  return bytes;
}

/// Into what is there already, which is no regular file.
Status write_into(const std::string& path, std::span<const std::uint8_t> bytes) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) return tl::unexpected<Error>(errno_error("cannot open", path, errno));
  CUBIST_RETURN_IF_ERROR(write_all(fd, bytes, path));
  if (::close(fd.release()) != 0) {
    return tl::unexpected<Error>(errno_error("cannot write", path, errno));
  }
  return {};
}

/// The path that a chain of symbolic links ends at, whether or not something is there.
Result<std::string> follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as Linux has it
  std::filesystem::path at = path;
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) return at.string();  // no link
    at = at.parent_path() / next;
  }
  return tl::unexpected<Error>(errno_error("cannot follow", path, ELOOP));
}

/// older  the file that is replaced, or null
Status replace_file(const std::string& path, const struct stat* older,
                    std::span<const std::uint8_t> bytes) {
  std::string temporary = path + ".XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) {  // also where the folder is missing: kNotFound is for what is to be read
    const Error error = errno_error("cannot create a file beside", path, errno);
    return tl::unexpected<Error>(Error(StatusCode::kIo, error.message()));
  }
  const auto abandon = [&](Error error) {
    ::unlink(temporary.c_str());
    return tl::unexpected<Error>(std::move(error));
  };
  if (Status written = write_all(fd, bytes, temporary); !written) {
    return abandon(std::move(written.error()));
  }
  ::fchmod(fd.get(), older == nullptr ? 0644 : older->st_mode & 0777);
  if (::fsync(fd.get()) != 0) return abandon(errno_error("cannot sync", temporary, errno));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return abandon(errno_error("cannot rename a finished file to", path, errno));
  }
  return {};
}

}  // namespace

UniqueFd& UniqueFd::operator=(UniqueFd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

Error errno_error(std::string_view what, const std::string& path, int error_number) {
  const StatusCode code = error_number == ENOENT ? StatusCode::kNotFound : StatusCode::kIo;
  // What is in the place of a path may be a URL with credentials.
  return Error(code, fmt::format("{} '{}': {}", what, shown_value(path),
                                 std::generic_category().message(error_number)));
}

Result<UniqueFd> open_regular_file(const std::string& path) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer. It has no effect on regular files.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return tl::unexpected<Error>(errno_error("cannot open", path, errno));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return tl::unexpected<Error>(errno_error("cannot inspect", path, errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return fail(StatusCode::kIo, "'{}' is not a regular file", path);
  }
  return fd;
}

Result<std::uint64_t> file_size(const UniqueFd& fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return tl::unexpected<Error>(errno_error("cannot inspect", path, errno));
  }
  return static_cast<std::uint64_t>(info.st_size);
}

Result<std::vector<std::uint8_t>> read_file(const std::string& path, std::uint64_t max_bytes) {
  return read_whole<std::vector<std::uint8_t>>(path, max_bytes);
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t max_bytes) {
  return read_whole<std::string>(path, max_bytes);
}

Status read_exactly_at(const UniqueFd& fd, std::uint64_t offset, std::span<std::uint8_t> out,
                       const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::size_t got, read_some_at(fd, offset, out, path));
  if (got != out.size()) {
    return fail(StatusCode::kIntegrity, "'{}' ends at byte {}; {} bytes from {} were expected",
                path, offset + got, out.size(), offset);
  }
  return {};
}

Status write_all(const UniqueFd& fd, std::span<const std::uint8_t> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return tl::unexpected<Error>(errno_error("cannot write", path, errno));
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Status write_file_atomically(const std::string& path, std::span<const std::uint8_t> bytes) {
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return fail(StatusCode::kIo, "cannot write '{}': it is a folder; name a file in it", path);
  }
  if (exists && !S_ISREG(info.st_mode)) return write_into(path, bytes);
  CUBIST_ASSIGN_OR_RETURN(const std::string target, follow_links(path));
  return replace_file(target, exists ? &info : nullptr, bytes);
}

Status write_file_atomically(const std::string& path, std::string_view text) {
  return write_file_atomically(
      path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace cubist
