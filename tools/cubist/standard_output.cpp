#include "standard_output.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace cubist::tools {
namespace {

/// Some file systems (NFS) report what could not be written when a descriptor is closed.
bool closes_well(int descriptor) {
  const int copy = ::dup(descriptor);
  return copy < 0 || ::close(copy) == 0;  // none to spare: nothing learnt
}

bool reader_has_left(int descriptor) {
  pollfd state{descriptor, POLLOUT, 0};
  return ::poll(&state, 1, 0) == 1 && (state.revents & POLLERR) != 0;
}

}  // namespace

void open_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is this one. Standard output cannot be written, so that it shows.
    ::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

ExitCode finish_output(ExitCode exit_code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  const bool failed = std::fflush(stdout) != 0 || !closes_well(STDOUT_FILENO);
  const int reason = errno;
  if ((!failed && !failed_before) || reader_has_left(STDOUT_FILENO)) return exit_code;
  const std::string why =
      failed ? std::generic_category().message(reason) : "an earlier part was not taken";
  std::fprintf(stderr,
               "cubist: error: cannot write standard output: %s; what was printed is not complete, "
               "run it again with room for all of it\n",
               why.c_str());
  return exit_code == ExitCode::kOk ? ExitCode::kDisk : exit_code;
}

}  // namespace cubist::tools
