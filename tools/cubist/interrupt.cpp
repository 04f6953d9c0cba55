#include "interrupt.h"

#include <array>
#include <csignal>

namespace cubist::tools {
namespace {

constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

std::atomic<bool> interrupted{false};
std::atomic<int> interrupted_by{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "used in a signal handler");

void on_signal(int number) {
  interrupted_by = number;
  interrupted = true;
  std::signal(number, SIG_DFL);
}

/// Only from one to the other: neither what ignores a signal nor what has ended a guard is changed.
void replace_handler(int number, void (*from)(int), void (*to)(int)) {
  struct sigaction now {};
  if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler == from) std::signal(number, to);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  for (const int number : kSignals) replace_handler(number, SIG_DFL, &on_signal);
}

InterruptGuard::~InterruptGuard() {
  for (const int number : kSignals) replace_handler(number, &on_signal, SIG_DFL);
}

const std::atomic<bool>* InterruptGuard::flag() const { return &interrupted; }

int interrupting_signal() { return interrupted_by; }

}  // namespace cubist::tools
