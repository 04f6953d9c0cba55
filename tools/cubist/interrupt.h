#pragma once

#include <atomic>

namespace cubist::tools {

/// Ctrl-C and SIGTERM set a flag while this lives, so that a command can stop cleanly and end with
/// 130. A second one ends the process at once.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  const std::atomic<bool>* flag() const;
};

}  // namespace cubist::tools
