#include "registry/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <system_error>

#include "base/file.h"

extern char** environ;

namespace cubist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t kMaxInputBytes = 4096;
constexpr std::size_t kMaxOutputBytes = 16 * 1024 * 1024;

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return fail(StatusCode::kIo, "cannot make a pipe: {}", std::generic_category().message(errno));
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// 0 or an errno.
int spawn(const std::vector<std::string>& arguments, int in, int out, int err, pid_t& pid) {
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  const int error = ::posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Reads what there is; false at the end of the stream.
bool drain(const UniqueFd& fd, std::string& text) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR || errno == EAGAIN;
  text.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

/// True once both streams ended; false at the deadline or when too much came.
bool gather(const Pipe& out, const Pipe& err, Clock::time_point deadline, ProcessOutput& result) {
  std::array<pollfd, 2> waits{{{out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}}};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || result.out.size() + result.err.size() > kMaxOutputBytes) return false;
    if (::poll(waits.data(), waits.size(), static_cast<int>(left)) < 0 && errno != EINTR)
      return false;
    if (waits[0].revents != 0 && !drain(out.read, result.out)) waits[0].fd = -1;
    if (waits[1].revents != 0 && !drain(err.read, result.err)) waits[1].fd = -1;
    waits[0].revents = waits[1].revents = 0;
  }
  return true;
}

int wait_for(pid_t pid) {
  int state = 0;
  while (::waitpid(pid, &state, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

}  // namespace

Result<ProcessOutput> run_process(const std::vector<std::string>& arguments, milliseconds timeout,
                                  std::string_view input) {
  if (input.size() > kMaxInputBytes) {
    return fail(StatusCode::kInternal, "an input of {} bytes for '{}'", input.size(),
                arguments.front());
  }
  CUBIST_ASSIGN_OR_RETURN(Pipe in, make_pipe());
  CUBIST_ASSIGN_OR_RETURN(Pipe out, make_pipe());
  CUBIST_ASSIGN_OR_RETURN(Pipe err, make_pipe());
  const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(input.data()),
                                            input.size());
  CUBIST_RETURN_IF_ERROR(write_all(in.write, bytes, arguments.front()));
  in.write = UniqueFd();
  pid_t pid = -1;
  if (const int error = spawn(arguments, in.read.get(), out.write.get(), err.write.get(), pid);
      error != 0) {
    return tl::unexpected<Error>(errno_error("cannot run", arguments.front(), error));
  }
  in.read = UniqueFd();
  out.write = UniqueFd();
  err.write = UniqueFd();
  ProcessOutput result;
  const bool ended = gather(out, err, Clock::now() + timeout, result);
  if (!ended) ::kill(pid, SIGKILL);
  result.exit_code = wait_for(pid);
  if (!ended) {
    return fail(StatusCode::kIo, "'{}' did not end within {} s and was stopped", arguments.front(),
                timeout.count() / 1000);
  }
  return result;
}

}  // namespace cubist
