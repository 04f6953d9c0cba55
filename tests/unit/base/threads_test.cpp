#include "base/threads.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>

#include "support/catch.h"
#include "support/processes.h"

namespace cubist {
namespace {

TEST_CASE("work is done once on each thread, the caller's among them") {
  for (const std::size_t count : {0U, 1U, 2U, 7U}) {
    std::mutex mutex;
    std::multiset<unsigned> numbers;
    std::thread::id first;
    on_threads(count, [&](unsigned number) {
      const std::lock_guard lock(mutex);
      numbers.insert(number);
      if (number == 0) first = std::this_thread::get_id();
    });
    CHECK(numbers.size() == std::max<std::size_t>(1, count));
    CHECK(*numbers.rbegin() + 1 == numbers.size());
    CHECK(first == std::this_thread::get_id());
  }
}

TEST_CASE("the other threads are waited for when the caller's work throws") {
  std::atomic<int> done = 0;
  CHECK_THROWS(on_threads(4, [&](unsigned number) {
    if (number == 0) throw std::runtime_error("no");
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ++done;
  }));
  CHECK(done == 3);
}

TEST_CASE("what another thread's work throws comes out by the caller, once all are done") {
  std::atomic<int> done = 0;
  CHECK_THROWS_AS(on_threads(4,
                             [&](unsigned number) {
                               if (number == 2) throw std::bad_alloc();
                               std::this_thread::sleep_for(std::chrono::milliseconds(20));
                               ++done;
                             }),
                  std::bad_alloc);
  CHECK(done == 3);
  CHECK_THROWS_AS(do_both([&] { ++done; }, [] { throw std::bad_alloc(); }), std::bad_alloc);
  CHECK(done == 4);
}

TEST_CASE("both are done, the first by the caller") {
  std::thread::id first;
  bool second = false;
  do_both([&] { first = std::this_thread::get_id(); }, [&] { second = true; });
  CHECK(first == std::this_thread::get_id());
  CHECK(second);
}

// A sanitizer's own memory is more than any limit that would keep stacks out.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("where the machine gives no thread, the caller does all the work") {
  const int code = test::finish_process(test::start_process([] {
    // No memory for another stack; root is not held by limits of processes.
    const rlimit none{std::size_t{64} << 20, std::size_t{64} << 20};
    if (::setrlimit(RLIMIT_AS, &none) != 0) return 3;
    std::atomic<int> done = 0;
    on_threads(200, [&](unsigned) {
      ++done;
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
    });
    return done >= 1 && done < 200 ? 0 : 1;
  }));
  CHECK(code == 0);
}
#endif

}  // namespace
}  // namespace cubist
