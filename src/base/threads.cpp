#include "base/threads.h"

#include <exception>
#include <mutex>
#include <system_error>
#include <vector>

namespace cubist {

void join(std::thread& thread) {
  while (thread.joinable()) {
    try {
      thread.join();
    } catch (const std::system_error& error) {
      if (error.code() != std::errc::timed_out) throw;
    }
  }
}

void make_room_to_throw() { static_cast<void>(std::uncaught_exceptions()); }

void on_threads(std::size_t count, const std::function<void(unsigned)>& work) {
  std::exception_ptr thrown;  // the first in another thread, where it would end the process
  std::mutex mutex;
  const auto work_elsewhere = [&](unsigned number) {
    make_room_to_throw();
    try {
      work(number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  struct Others {
    void wait() {
      for (std::thread& thread : threads) join(thread);
    }
    ~Others() { wait(); }
    std::vector<std::thread> threads;
  } others;
  if (count > 1) others.threads.reserve(count - 1);
  try {
    for (unsigned number = 1; number < count; ++number) {
      others.threads.emplace_back(work_elsewhere, number);
    }
  } catch (const std::system_error&) {
    // No more to be had: those there are take all the tasks.
  }
  work(0);
  others.wait();
  if (thrown) std::rethrow_exception(thrown);
}

void do_both(const std::function<void()>& first, const std::function<void()>& second) {
  bool done = false;
  on_threads(2, [&](unsigned number) {
    if (number == 0) return first();
    second();
    done = true;
  });
  if (!done) second();
}

}  // namespace cubist
