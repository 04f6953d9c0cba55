#include <string>

#include "launcher/launch.h"
#include "rig.h"

using namespace cubist;
using launcher::ReadyMemo;
using test::fake_cuda;
using test::kNothingHeld;
using test::Rig;

namespace {

Status launch_once(Rig& rig, launcher::Launcher& launcher, ReadyMemo& memo) {
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          launcher.ready(rig.selection, memo, &rig.stream));
  const std::vector<std::uint8_t> params(512);
  return launcher::launch_kernel(launcher.driver(), ready.kernel->function, *ready.plan,
                                 params.data(), rig.stream);
}

/// A plan that takes every step there is: opt-in shared memory, large clusters, occupancy.
void ask_for_everything(Rig& rig) {
  rig.record.traits.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory;
  LaunchPlan& plan = rig.selection.plans[0];
  plan.grid = {16, 1, 1};
  plan.cluster = {16, 1, 1};
  plan.min_active_clusters = 1;
}

std::vector<std::string> calls_of_a_cold_launch() {
  Rig rig;
  ask_for_everything(rig);
  const auto launcher = rig.launcher();
  ReadyMemo memo;
  REQUIRE(launch_once(rig, *launcher, memo).has_value());
  std::vector<std::string> names;
  for (const test::FakeCall& call : fake_cuda().calls()) names.push_back(call.name);
  return names;
}

}  // namespace

TEST_CASE("a cold launch makes the calls that are expected") {
  CHECK(calls_of_a_cold_launch() == std::vector<std::string>{"cuInit",
                                                             "cuCtxGetId",
                                                             "cuCtxGetCurrent",
                                                             "cuCtxGetDevice",
                                                             "cuDeviceGetCount",
                                                             "cuDeviceGet",
                                                             "cuDeviceGetName",
                                                             "cuDeviceGetAttribute",
                                                             "cuDeviceGetAttribute",
                                                             "cuDeviceGetAttribute",
                                                             "cuDeviceGetAttribute",
                                                             "cuStreamIsCapturing",
                                                             "cuThreadExchangeStreamCaptureMode",
                                                             "cuModuleLoadData",
                                                             "cuModuleGetFunction",
                                                             "cuFuncSetAttribute",
                                                             "cuFuncSetAttribute",
                                                             "cuThreadExchangeStreamCaptureMode",
                                                             "cuOccupancyMaxActiveClusters",
                                                             "cuLaunchKernelEx"});
}

TEST_CASE(
    "every CUDA error at every call of a launch: right status, nothing left, next launch fine") {
  const std::vector<std::string> names = calls_of_a_cold_launch();
  for (std::size_t nth = 1; nth <= names.size(); ++nth) {
    // It cannot fail, and nothing depends on its answer.
    if (names[nth - 1] == "cuThreadExchangeStreamCaptureMode") continue;
    for (const int error : test::all_cuda_errors()) {
      Rig rig;
      ask_for_everything(rig);
      {
        const auto launcher = rig.launcher();
        ReadyMemo memo;
        fake_cuda().fail_nth(static_cast<int>(nth), static_cast<cuda::CUresult>(error));
        const Status failed = launch_once(rig, *launcher, memo);
        INFO(names[nth - 1] << " answers " << error);
        REQUIRE_FALSE(failed.has_value());
        const bool missing_function = names[nth - 1] == "cuModuleGetFunction" && error == 500;
        if (missing_function) {
          CHECK(failed.error().code() == StatusCode::kManifestInvalid);
        } else {
          const Status expected = driver::check_driver(
              rig.driver->table(), static_cast<cuda::CUresult>(error), names[nth - 1]);
          CHECK(failed.error().code() == expected.error().code());
          CHECK_THAT(failed.error().message(),
                     Catch::Matchers::Contains(expected.error().message()));
        }
        CHECK(fake_cuda().launches().empty());
        CHECK(fake_cuda().leaks().modules <= 1);
        CHECK(launch_once(rig, *launcher, memo).has_value());
        CHECK(fake_cuda().launches().size() == 1);
        CHECK(fake_cuda().leaks().modules == 1);
      }
      CHECK(fake_cuda().leaks() == kNothingHeld);
    }
  }
}
