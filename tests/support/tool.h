#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/scratch.h"

namespace cubist::test {

/// What a run of the command line left behind.
struct ToolRun {
  int exit_code = -1;  ///< 128 + signal if it was killed
  std::string out;
  std::string err;
};

inline std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Runs `cubist ARGUMENTS...` with no terminal and waits for its end.
inline ToolRun run_tool(const std::vector<std::string>& arguments) {
  const Scratch scratch;
  const std::string out = scratch / "out";
  const std::string err = scratch / "err";
  std::vector<std::string> words = {CUBIST_TOOL};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int flags = O_CREAT | O_WRONLY | O_TRUNC;
    ::dup2(::open("/dev/null", O_RDONLY), STDIN_FILENO);
    ::dup2(::open(out.c_str(), flags, 0600), STDOUT_FILENO);
    ::dup2(::open(err.c_str(), flags, 0600), STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int state = 0;
  ::waitpid(pid, &state, 0);
  const int exit_code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
  return {exit_code, file_text(out), file_text(err)};
}

}  // namespace cubist::test
