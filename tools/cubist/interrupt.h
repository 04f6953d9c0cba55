#pragma once

#include <atomic>

namespace cubist::tools {

/// Ctrl-C, SIGTERM and SIGHUP set a flag while this lives, so that a command can stop cleanly and
/// end with 128 and the signal's number. A second one of its kind ends the process at once. What is
/// ignored from the start (nohup, a job in the background) stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>* flag() const;
};

/// The signal that set the flag; 0 if none has.
int interrupting_signal();

}  // namespace cubist::tools
