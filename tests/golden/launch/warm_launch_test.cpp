// Warm launches of the trtllm-gen family through the C API allocate nothing, whatever follows the
// main kernel.

#include <cstdio>

#include "../../unit/launcher/allocation_counter.h"
#include "support/catch.h"
#include "support/warm_calls.h"

namespace {

using cubist::test::allocation_count;
using cubist::test::WarmCalls;

constexpr int kLaunches = 200;

template <class Launch>
std::uint64_t allocations_of(Launch launch) {
  const std::uint64_t before = allocation_count();
  bool fine = true;
  for (int i = 0; i < kLaunches; ++i) fine = launch() == CUBIST_STATUS_OK && fine;
  const std::uint64_t after = allocation_count();
  CHECK(fine);
  return after - before;
}

}  // namespace

TEST_CASE("a warm launch of a trtllm-gen call allocates nothing, with reduction and LSE too") {
  const std::uint64_t before_cold = allocation_count();
  const WarmCalls warm;
  CHECK(allocation_count() > before_cold);  // the counter counts
  int with_followers = 0;
  for (const WarmCalls::Call& call : warm.calls()) {
    INFO(call.name << ", " << call.kernel);
    CHECK(allocations_of([&] { return warm.launch_selection(call); }) == 0);
    CHECK(allocations_of([&] { return warm.launch_runtime(call); }) == 0);
    with_followers += call.num_launches > 1 ? 1 : 0;
    std::printf("%s: %d kernel(s), %s\n", call.name.c_str(), call.num_launches,
                call.kernel.c_str());
  }
  CHECK(with_followers > 0);
}
