#include <atomic>
#include <cstdlib>
#include <new>

#include "kernels.h"
#include "selector/memo.h"
#include "selector/select.h"
#include "support/catch.h"

namespace {

std::atomic<std::size_t> g_allocations{0};

void* count_and_allocate(std::size_t size) {
  ++g_allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

// This program counts every allocation it makes.
void* operator new(std::size_t size) { return count_and_allocate(size); }
void* operator new[](std::size_t size) { return count_and_allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace cubist {

TEST_CASE("a selection that succeeds allocates nothing, fallbacks and memo included") {
  std::mt19937 random(23);
  const auto full = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  const auto pack = test::thinned(full, 0.7, random);
  const auto table = pack.table();
  selector::SelectionMemo memo(table, 8);
  const selector::SelectOptions options;
  int succeeded = 0;
  int fallbacks = 0;
  for (int i = 0; i < 4000; ++i) {
    const AttentionProblem problem = test::random_problem(random);
    const DeviceProfile device = test::random_device(random);
    const std::size_t before = g_allocations;
    const auto selection = selector::select(table, problem, device, options);
    const std::size_t during = g_allocations - before;
    if (!selection) continue;
    REQUIRE(during == 0);
    ++succeeded;
    if (selection->best().fallback != FallbackReason::kNone) ++fallbacks;
    Status status;
    const std::size_t before_memo = g_allocations;
    const Selection* remembered = memo.find(problem, device, options, status);
    REQUIRE(g_allocations == before_memo);
    REQUIRE(remembered != nullptr);
  }
  CHECK(succeeded > 1000);
  CHECK(fallbacks > 100);
}

}  // namespace cubist
