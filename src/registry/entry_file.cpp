#include "registry/entry_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "registry/store_file.h"

namespace cubist {
namespace {

// A stale handle means the file was replaced on the server; opening by path finds the new one. More
// tries would only hide a mount that is broken.
constexpr int kStaleTries = 3;

/// 0 or an errno.
int try_open(const std::string& path, int depth, EntryFile& entry, bool& regular) {
  entry.fd = open_in_store(path, depth, O_RDONLY);
  if (!entry.fd.valid()) return errno;
  struct stat info {};
  if (::fstat(entry.fd.get(), &info) != 0) return errno;
  regular = S_ISREG(info.st_mode);
  entry.size_bytes = static_cast<std::uint64_t>(info.st_size);
  return 0;
}

}  // namespace

Error store_read_error(std::string_view what, const std::string& path, int error_number) {
  std::string_view advice = "check the disk or mount, or use another store (CUBIST_STORE, --store)";
  if (error_number == EACCES || error_number == EPERM) {
    advice = "make it readable for this user, or use another store (CUBIST_STORE, --store)";
  }
  return Error(StatusCode::kIo, fmt::format("{} '{}': {}; {}", what, path,
                                            std::generic_category().message(error_number), advice));
}

Result<std::optional<EntryFile>> open_entry(const std::string& path, int depth) {
  EntryFile entry;
  bool regular = false;
  int error_number = ESTALE;
  for (int i = 0; i < kStaleTries && error_number == ESTALE; ++i) {
    error_number = try_open(path, depth, entry, regular);
  }
  // A socket, or a link: no regular file either.
  if (error_number == ENXIO || error_number == ELOOP) error_number = 0;
  if (error_number == ENOENT || error_number == ENOTDIR) return std::optional<EntryFile>();
  if (error_number != 0) {
    return tl::unexpected<Error>(
        store_read_error("cannot open the store entry", path, error_number));
  }
  if (!regular) {
    return fail(StatusCode::kIntegrity,
                "the store entry '{}' is not a regular file; remove it, or run 'cubist verify "
                "--repair'",
                path);
  }
  return std::optional<EntryFile>(std::move(entry));
}

void mark_in_use(const EntryFile& file) { ::flock(file.fd.get(), LOCK_SH | LOCK_NB); }

Status read_entry_at(const EntryFile& entry, const std::string& path, std::uint64_t offset,
                     std::span<std::uint8_t> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(entry.fd.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return tl::unexpected<Error>(store_read_error("cannot read the store entry", path, errno));
    }
    if (got == 0) {
      return fail(StatusCode::kIntegrity,
                  "'{}' ends at byte {}, expected {}: the file is truncated", path, offset + done,
                  offset + out.size());
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace cubist
