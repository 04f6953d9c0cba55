#include "selector/memo.h"

#include <thread>

#include "kernels.h"
#include "support/catch.h"

namespace cubist {

TEST_CASE("a memo answers as select does, and remembers") {
  const auto pack = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  const auto table = pack.table();
  selector::SelectionMemo memo(table, 16);
  std::mt19937 random(5);
  std::vector<std::pair<AttentionProblem, DeviceProfile>> asked;
  for (int i = 0; i < 60; ++i) {
    asked.emplace_back(test::random_problem(random), test::random_device(random));
  }
  for (int i = 0; i < 3000; ++i) {
    const auto& [problem, device] = asked[random() % asked.size()];
    selector::SelectOptions options;
    options.strict = random() % 2 == 0;
    Status status;
    const Selection* remembered = memo.find(problem, device, options, status);
    const auto selection = selector::select(table, problem, device, options);
    REQUIRE((remembered != nullptr) == selection.has_value());
    if (remembered == nullptr) {
      REQUIRE(status.error().message() == selection.error().message());
      continue;
    }
    REQUIRE(remembered->num_plans == selection->num_plans);
    REQUIRE(remembered->best().record == selection->best().record);
    REQUIRE(remembered->best().grid == selection->best().grid);
    REQUIRE(remembered->best().fallback == selection->best().fallback);
  }
  CHECK(memo.hits() > 100);
  CHECK(memo.hits() + memo.misses() == 3000);
}

TEST_CASE("a memo tells apart problems and devices that differ in one field") {
  const auto pack = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  const auto table = pack.table();
  selector::SelectionMemo memo(table, 1);
  AttentionProblem problem;
  problem.num_q_heads = 96;
  problem.page_size = 32;
  problem.batch = 8;
  problem.max_kv_len = 8192;
  DeviceProfile device = test::b200();
  Status status;
  const auto misses_after = [&](auto change) {
    REQUIRE(memo.find(problem, device, {}, status) != nullptr);
    const auto before = memo.misses();
    change();
    REQUIRE(memo.find(problem, device, {}, status) != nullptr);
    return memo.misses() - before;
  };
  CHECK(misses_after([] {}) == 0);
  CHECK(misses_after([&] { problem.sinks = true; }) == 1);
  CHECK(misses_after([&] { problem.lse_stride_heads = 8; }) == 1);
  CHECK(misses_after([&] { problem.workspace_size -= 16; }) == 1);
  CHECK(misses_after([&] { device.max_active_clusters[2] = 3; }) == 1);
  CHECK(misses_after([&] { device.num_sms = 132; }) == 1);
  memo.clear();
  CHECK(misses_after([&] { memo.clear(); }) == 1);
}

TEST_CASE("any number of threads select from one table") {
  const auto pack = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  const auto table = pack.table();
  std::vector<std::vector<const KernelRecord*>> chosen(4);
  std::vector<std::thread> threads;
  for (auto& mine : chosen) {
    threads.emplace_back([&table, &mine] {
      std::mt19937 random(99);
      for (int i = 0; i < 500; ++i) {
        const auto selection =
            selector::select(table, test::random_problem(random), test::random_device(random));
        mine.push_back(selection ? selection->best().record : nullptr);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : chosen) CHECK(mine == chosen[0]);
}

}  // namespace cubist
