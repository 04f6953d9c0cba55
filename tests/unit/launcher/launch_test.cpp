#include "launcher/launch.h"

#include <cstring>

#include "rig.h"

using namespace cubist;
using test::fake_cuda;
using test::Rig;

namespace {

struct Loaded : Rig {
  Loaded() : owned(launcher()) {
    ready = owned->ready(selection, memo, &stream).value();
    fake_cuda().forget_calls();
  }
  Status launch(const LaunchPlan& plan) {
    return launcher::launch_kernel(*driver, ready.kernel->function, plan, params.data(), stream);
  }

  launcher::ReadyMemo memo;
  std::unique_ptr<launcher::Launcher> owned;
  launcher::ReadyPlan ready;
  std::vector<std::uint8_t> params = std::vector<std::uint8_t>(512, 7);
};

}  // namespace

TEST_CASE("a launch hands on geometry, stream and parameters") {
  Loaded rig;
  REQUIRE(rig.launch(rig.plan()).has_value());
  const auto launches = fake_cuda().launches();
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].function == "decode_one");
  CHECK(launches[0].grid == std::array<unsigned, 3>{4, 8, 2});
  CHECK(launches[0].block == std::array<unsigned, 3>{128, 1, 1});
  CHECK(launches[0].smem == 65536);
  CHECK(launches[0].stream == rig.stream);
  CHECK(launches[0].params == rig.params);
  CHECK(launches[0].pdl);
  CHECK_FALSE(launches[0].has_cluster);
}

TEST_CASE("PDL is an attribute only where the plan asks for it") {
  Loaded rig;
  LaunchPlan plan = rig.plan();
  plan.pdl = false;
  REQUIRE(rig.launch(plan).has_value());
  CHECK_FALSE(fake_cuda().launches()[0].pdl);
}

TEST_CASE("clusters come with their scheduling policy") {
  Loaded rig;
  LaunchPlan plan = rig.plan();
  plan.cluster = {4, 1, 1};
  plan.cluster_sched_policy = cuda::CU_CLUSTER_SCHEDULING_POLICY_SPREAD;
  REQUIRE(rig.launch(plan).has_value());
  const auto launch = fake_cuda().launches().at(0);
  CHECK(launch.has_cluster);
  CHECK(launch.cluster == std::array<unsigned, 3>{4, 1, 1});
  CHECK(launch.cluster_sched_policy == cuda::CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
  CHECK(launch.pdl);
}

TEST_CASE("a refused launch names the kernel and the driver's error") {
  Loaded rig;
  fake_cuda().fail_nth(1, cuda::CUDA_ERROR_ILLEGAL_ADDRESS);
  const Status status = rig.launch(rig.plan());
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code() == StatusCode::kDriverError);
  CHECK_THAT(status.error().message(),
             Catch::Matchers::Contains("kernel 'decode_one': cuLaunchKernelEx failed") &&
                 Catch::Matchers::Contains("context is lost"));
}

TEST_CASE("occupancy is asked with the plan's own clusters") {
  Loaded rig;
  LaunchPlan plan = rig.plan();
  plan.cluster = {2, 1, 1};
  fake_cuda().set_max_active_clusters(33);
  CHECK(launcher::max_active_clusters(*rig.driver, rig.ready.kernel->function, plan).value() == 33);
}
