#include "output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

namespace cubist::tools {
namespace {

Result<UniqueFd> standard_output() {
  if (::isatty(STDOUT_FILENO) == 1) {
    return fail(StatusCode::kInvalidArgument,
                "standard output is a terminal; give a file with -o, or pipe it somewhere");
  }
  UniqueFd fd(::dup(STDOUT_FILENO));
  if (!fd.valid()) return tl::unexpected<Error>(errno_error("cannot open", "-", errno));
  return fd;
}

Error as_io(const Error& error) { return Error(StatusCode::kIo, error.message()); }

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  if (path == "-") {
    CUBIST_ASSIGN_OR_RETURN(UniqueFd fd, standard_output());
    return OutputFile("standard output", {}, std::move(fd));
  }
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) {
    return fail(StatusCode::kIo, "cannot write '{}': it is a folder; name a file in it", path);
  }
  if (exists && !S_ISREG(info.st_mode)) {
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
    if (!fd.valid()) return tl::unexpected<Error>(as_io(errno_error("cannot open", path, errno)));
    return OutputFile(path, {}, std::move(fd));
  }
  std::error_code error;  // a link stays one: what it points to is replaced
  const auto target = std::filesystem::canonical(path, error);
  const std::string final_path = error ? path : target.string();
  std::string temporary = final_path + ".XXXXXX";
  UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd.valid()) {
    return tl::unexpected<Error>(as_io(errno_error("cannot create a file beside", path, errno)));
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(fd.get(), exists ? info.st_mode & 0777 : 0666 & ~mask);
  return OutputFile(final_path, std::move(temporary), std::move(fd));
}

OutputFile::~OutputFile() {
  if (!temporary_.empty() && fd_.valid()) ::unlink(temporary_.c_str());
}

Status OutputFile::finish() {
  if (temporary_.empty()) return {};
  if (::fsync(fd_.get()) != 0) {
    return tl::unexpected<Error>(as_io(errno_error("cannot sync", temporary_, errno)));
  }
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    return tl::unexpected<Error>(
        as_io(errno_error("cannot rename a finished file to", path_, errno)));
  }
  temporary_.clear();
  return {};
}

}  // namespace cubist::tools
