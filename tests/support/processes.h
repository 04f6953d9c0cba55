#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

namespace cubist::test {

/// Runs work in a process of its own, whose exit code is the work's answer.
inline pid_t start_process(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  // kill(-1) would end every process there is.
  if (pid < 0) throw std::runtime_error("fork failed");
  if (pid == 0) ::_exit(work());
  return pid;
}

/// Its exit code; 128 + signal if it was killed.
inline int finish_process(pid_t pid) {
  int state = 0;
  ::waitpid(pid, &state, 0);
  return WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
}

}  // namespace cubist::test
