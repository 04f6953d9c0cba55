#include "driver/driver.h"

#include <pthread.h>

namespace cubist::driver {
namespace {

std::atomic<std::uint64_t> g_fork_generation{1};

void count_fork() { g_fork_generation.fetch_add(1, std::memory_order_relaxed); }

Status forked_error() {
  return fail(StatusCode::kForked,
              "the CUDA driver was initialised before fork(), and the child cannot use it; start "
              "worker processes with spawn or exec, or launch in the parent only");
}

}  // namespace

std::uint64_t fork_generation() {
  // Registered on first use, which is before any cuInit of ours. A handler instead of getpid() at
  // every launch: that is a system call.
  static const int registered = pthread_atfork(nullptr, nullptr, &count_fork);
  static_cast<void>(registered);
  return g_fork_generation.load(std::memory_order_relaxed);
}

Driver::Driver(DriverTable table) : table_(std::move(table)) { fork_generation(); }

Result<std::shared_ptr<Driver>> Driver::open() { return open(libcuda_names()); }

Result<std::shared_ptr<Driver>> Driver::open(const std::vector<std::string>& names) {
  CUBIST_ASSIGN_OR_RETURN(DriverTable table, load_driver_table(names));
  return std::make_shared<Driver>(std::move(table));
}

bool Driver::usable() const {
  return initialised_in_.load(std::memory_order_acquire) == fork_generation();
}

Status Driver::init() {
  if (usable()) return {};
  return init_slowly();
}

Status Driver::init_slowly() {
  // Before the mutex: another thread of the parent may have held it at the fork.
  if (initialised_in_.load(std::memory_order_acquire) != 0) {
    if (usable()) return {};
    return forked_error();
  }
  const std::lock_guard lock(mutex_);
  if (initialised_in_.load(std::memory_order_acquire) != 0) return {};
  CUBIST_RETURN_IF_ERROR(check(table_.cuInit(0), "cuInit"));
  initialised_in_.store(fork_generation(), std::memory_order_release);
  return {};
}

}  // namespace cubist::driver
