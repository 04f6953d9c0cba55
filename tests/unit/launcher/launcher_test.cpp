#include "launcher/launcher.h"

#include <thread>

#include "launcher/launch.h"
#include "rig.h"
#include "support/child.h"

using namespace cubist;
using Catch::Matchers::Contains;
using launcher::ReadyMemo;
using test::fake_cuda;
using test::kNothingHeld;
using test::Rig;

namespace {

/// A rig whose first plan wants clusters to run at once, and whose second does not.
struct TwoPlans : Rig {
  TwoPlans() : Rig(90, {"decode_one", "decode_two"}) {
    second = record;
    second.name = "decode_two";
    selection.plans[0].cluster = {4, 1, 1};
    selection.plans[0].min_active_clusters = 16;
    selection.plans[1] = plan_of(second);
    selection.num_plans = 2;
  }
  KernelRecord second;
};

Status launch_once(Rig& rig, launcher::Launcher& launcher, ReadyMemo& memo) {
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          launcher.ready(rig.selection, memo, &rig.stream));
  const std::vector<std::uint8_t> params(512);
  return launcher::launch_kernel(launcher.driver(), ready.kernel->function, *ready.plan,
                                 params.data(), rig.stream);
}

}  // namespace

TEST_CASE("the first plan is taken where its clusters fit") {
  TwoPlans rig;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  fake_cuda().set_max_active_clusters(16);
  CHECK(launcher->ready(rig.selection, memo, &rig.stream)->plan == &rig.selection.plans[0]);
}

TEST_CASE("the next plan is taken where the clusters do not fit, and nothing is selected again") {
  TwoPlans rig;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  fake_cuda().set_max_active_clusters(15);
  CHECK(launcher->ready(rig.selection, memo, &rig.stream)->plan == &rig.selection.plans[1]);
  fake_cuda().forget_calls();
  CHECK(launcher->ready(rig.selection, memo, &rig.stream)->plan == &rig.selection.plans[1]);
  CHECK(fake_cuda().count("cuOccupancyMaxActiveClusters") == 0);
}

TEST_CASE("where no plan holds, the first plan's reason is given") {
  TwoPlans rig;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  rig.selection.num_plans = 1;
  fake_cuda().set_max_active_clusters(3);
  const auto ready = launcher->ready(rig.selection, memo, &rig.stream);
  REQUIRE_FALSE(ready.has_value());
  CHECK(ready.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(ready.error().message(),
             Contains("16 clusters must run at once") && Contains("fits 3"));
}

TEST_CASE("a kernel for another architecture is refused before it is fetched") {
  Rig rig;
  rig.record.traits.arch = {100, SmArch::Kind::kFamily};
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  const auto ready = launcher->ready(rig.selection, memo, &rig.stream);
  REQUIRE_FALSE(ready.has_value());
  CHECK(ready.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(ready.error().message(),
             Contains("is for sm_100f") && Contains("'Fake H200'") && Contains("sm_90"));
  CHECK(rig.cubins_asked == 0);
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
}

TEST_CASE("a kernel that needs a newer driver is refused before it is fetched") {
  Rig rig;
  std::int32_t need = 13010;
  launcher::Launcher launcher(rig.driver, rig.source(), [&](const KernelRecord&) { return need; });
  ReadyMemo memo;
  const auto ready = launcher.ready(rig.selection, memo, &rig.stream);
  REQUIRE_FALSE(ready.has_value());
  CHECK(ready.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(ready.error().message(), Contains("'decode_one' needs a driver for CUDA 13.1") &&
                                          Contains("supports CUDA 13.0") &&
                                          Contains("update the NVIDIA driver"));
  const std::vector<const KernelRecord*> records = {&rig.record};
  const auto report = launcher.prepare(records, 1, [](auto) -> Status { std::abort(); });
  REQUIRE(report.has_value());
  CHECK(report->status().error().code() == StatusCode::kDeviceMismatch);
  CHECK(rig.cubins_asked == 0);
  CHECK(fake_cuda().count("cuModuleLoadData") == 0);
  need = 13000;
  CHECK(launcher.ready(rig.selection, memo, &rig.stream).has_value());
}

TEST_CASE("the next plan is taken where the driver is too old for the first") {
  TwoPlans rig;
  launcher::Launcher launcher(rig.driver, rig.source(), [](const KernelRecord& record) {
    return record.name == "decode_one" ? 14000 : 12080;
  });
  ReadyMemo memo;
  CHECK(launcher.ready(rig.selection, memo, &rig.stream)->plan == &rig.selection.plans[1]);
  CHECK(fake_cuda().count("cuModuleLoadData") == 1);
}

TEST_CASE("shared memory beyond the device's is refused with both numbers") {
  Rig rig;
  rig.record.traits.smem = rig.selection.plans[0].smem = 232449;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  const auto ready = launcher->ready(rig.selection, memo, &rig.stream);
  REQUIRE_FALSE(ready.has_value());
  CHECK_THAT(ready.error().message(), Contains("232449") && Contains("232448"));
}

TEST_CASE("a geometry that no device takes is refused before a load") {
  const auto refuse = [](const auto& change) {
    Rig rig;
    change(rig.selection.plans[0]);
    const auto launcher = rig.launcher();
    ReadyMemo memo;
    const auto ready = launcher->ready(rig.selection, memo, &rig.stream);
    REQUIRE_FALSE(ready.has_value());
    CHECK(ready.error().code() == StatusCode::kInternal);
    CHECK(rig.cubins_asked == 0);
  };
  refuse([](LaunchPlan& plan) { plan.grid = {0, 1, 1}; });
  refuse([](LaunchPlan& plan) { plan.grid = {1, 65536, 1}; });
  refuse([](LaunchPlan& plan) { plan.grid = {0x80000000U, 1, 1}; });
  refuse([](LaunchPlan& plan) { plan.block = {1025, 1, 1}; });
  refuse([](LaunchPlan& plan) { plan.block = {0, 1, 1}; });
  refuse([](LaunchPlan& plan) { plan.cluster = {3, 1, 1}; });
  refuse([](LaunchPlan& plan) { plan.cluster = {4, 8, 1}; });
  refuse([](LaunchPlan& plan) { plan.cluster = {0, 1, 1}; });
}

TEST_CASE("a warm launch makes two driver calls") {
  Rig rig;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  REQUIRE(launch_once(rig, *launcher, memo).has_value());
  fake_cuda().forget_calls();
  REQUIRE(launch_once(rig, *launcher, memo).has_value());
  const auto calls = fake_cuda().calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].name == "cuCtxGetId");
  CHECK(calls[1].name == "cuLaunchKernelEx");
}

TEST_CASE("1,000 launches load once") {
  Rig rig;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  for (int i = 0; i < 1000; ++i) REQUIRE(launch_once(rig, *launcher, memo).has_value());
  CHECK(launcher->counters().loads == 1);
  CHECK(fake_cuda().launches().size() == 1000);
}

TEST_CASE("a prepared launch goes into a capture") {
  Rig rig;
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  REQUIRE(launcher->ready(rig.selection, memo, nullptr).has_value());
  fake_cuda().begin_capture(rig.stream);
  CHECK(launch_once(rig, *launcher, memo).has_value());
  CHECK(fake_cuda().end_capture(rig.stream));
  CHECK(fake_cuda().launches().at(0).captured);
}

TEST_CASE("threads in contexts of two devices launch at once") {
  Rig rig;
  fake_cuda().set_devices({{}, {}});
  const cuda::CUcontext other = fake_cuda().create_context(1);
  {
    const auto launcher = rig.launcher();
    ReadyMemo memo;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&, i] {
        fake_cuda().set_current(i % 2 == 0 ? rig.context : other);
        const std::vector<std::uint8_t> params(512);
        for (int again = 0; again < 50; ++again) {
          const auto ready = launcher->ready(rig.selection, memo, nullptr).value();
          static_cast<void>(launcher::launch_kernel(launcher->driver(), ready.kernel->function,
                                                    *ready.plan, params.data(), nullptr));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(launcher->counters().loads == 2);
    CHECK(fake_cuda().launches().size() == 400);
  }
  CHECK(fake_cuda().leaks() == kNothingHeld);
}

TEST_CASE("a forked child cannot launch, and destroying the launcher there touches nothing") {
  Rig rig;
  auto launcher = rig.launcher();
  ReadyMemo memo;
  REQUIRE(launch_once(rig, *launcher, memo).has_value());
  CHECK(test::in_child([&] {
          fake_cuda().forget_calls();
          const Status status = launch_once(rig, *launcher, memo);
          launcher.reset();
          return std::string(to_string(status.error().code())) + " " +
                 std::to_string(fake_cuda().calls().size());
        }) == "forked 0");
  CHECK(launch_once(rig, *launcher, memo).has_value());
}
