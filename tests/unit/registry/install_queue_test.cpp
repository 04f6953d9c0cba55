#include "registry/install_queue.h"

#include <sys/resource.h>

#include <chrono>
#include <new>
#include <thread>

#include "support/catch.h"
#include "support/processes.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace cubist {
namespace {

using test::record_of;
using test::Scratch;
using test::synthetic_bytes;

struct Rig {
  Scratch scratch;
  Store store{{scratch / "store", {}}};
  std::vector<std::uint8_t> bytes = synthetic_bytes(1, 1000);
  KernelRecord record = record_of("kernel", bytes);

  InstallQueue::Task task() const {
    InstallQueue::Task task;
    task.id = 7;
    task.record = &record;
    task.origin = "here";
    task.take = [this](HttpResponse) -> Result<Bytes> { return bytes; };
    return task;
  }
};

/// What is done, or nothing after a minute.
std::vector<InstallQueue::Done> wait_for_one(InstallQueue& queue) {
  for (int i = 0; i < 60'000; ++i) {
    std::vector<InstallQueue::Done> done = queue.drain();
    if (!done.empty()) return done;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

TEST_CASE("what is submitted ends in the store") {
  const Rig rig;
  const unsigned threads = GENERATE(0U, 1U, 3U);
  InstallQueue queue(rig.store, threads, [] {});
  queue.submit(rig.task());
  const auto done = wait_for_one(queue);
  REQUIRE(done.size() == 1);
  CHECK(done[0].id == 7);
  CHECK(done[0].stage == InstallQueue::Stage::kDone);
  CHECK(queue.pending() == 0);
  CHECK(rig.store.open_verified(rig.record));
}

TEST_CASE("memory that runs out on a thread is the caller's to hear, and ends nothing else") {
  const Rig rig;
  const unsigned threads = GENERATE(1U, 3U);
  InstallQueue queue(rig.store, threads, [] {});
  InstallQueue::Task task = rig.task();
  task.take = [](HttpResponse) -> Result<Bytes> { throw std::bad_alloc(); };
  queue.submit(std::move(task));
  CHECK_THROWS_AS(wait_for_one(queue), std::bad_alloc);
  CHECK_THROWS_AS(queue.drain(), std::bad_alloc);
}

// A sanitizer's own memory is more than any limit that would keep stacks out.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("where the machine gives no thread, submitting does the work") {
  const Rig rig;
  const int code = test::finish_process(test::start_process([&] {
    // No memory for another stack; root is not held by limits of processes.
    const rlimit none{std::size_t{64} << 20, std::size_t{64} << 20};
    if (::setrlimit(RLIMIT_AS, &none) != 0) return 3;
    InstallQueue queue(rig.store, 200, [] {});
    queue.submit(rig.task());
    const auto done = wait_for_one(queue);
    return done.size() == 1 && done[0].stage == InstallQueue::Stage::kDone ? 0 : 1;
  }));
  CHECK(code == 0);
  CHECK(rig.store.open_verified(rig.record));
}
#endif

}  // namespace
}  // namespace cubist
