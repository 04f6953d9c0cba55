// Every CUDA error at every driver call of what the C API does with a GPU, injected once each: the
// right status, no launch, nothing leaked, and the same call is fine the next time.

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "rig.h"

namespace {

using cubist::test::all_cuda_errors;
using cubist::test::CRig;
using cubist::test::fake_cuda;
using cubist::test::FakeLeaks;

/// Something a caller does, and what must have happened before.
struct Scenario {
  std::string name;
  std::function<void(CRig&)> before;
  std::function<cubist_status(CRig&)> act;
};

cubist_status launch(CRig& rig) {
  return cubist_selection_launch(rig.selection, &rig.args, rig.stream);
}

cubist_status prepare(CRig& rig) {
  const char* kernels[] = {"cubist_lse_sm90a"};
  cubist_selection* selections[] = {rig.selection};
  cubist_prepare_options options = CUBIST_PREPARE_OPTIONS_INIT;
  options.num_threads = 1;  // so that calls come in one order
  options.kernels = kernels;
  options.num_kernels = 1;
  options.selections = selections;
  options.num_selections = 1;
  return cubist_runtime_prepare(rig.runtime, &options, nullptr);
}

cubist_status fuse(CRig& rig) {
  static float scalars[3] = {0.5F, 0, 0};
  cubist_scales scales = CUBIST_SCALES_INIT;
  scales.sm_scale_device = scalars;
  scales.out_bmm1_scale_log2 = scalars + 1;
  scales.out_bmm2_scale = scalars + 2;
  return cubist_scales_fuse(rig.runtime, &rig.problem, &scales, rig.stream);
}

std::vector<Scenario> scenarios() {
  const auto nothing = [](CRig&) {};
  return {
      {"a cold launch", nothing, launch},
      {"a cold launch in one call", nothing,
       [](CRig& rig) {
         return cubist_runtime_launch(rig.runtime, &rig.problem, nullptr, &rig.args, rig.stream);
       }},
      {"a warm launch", [](CRig& rig) { REQUIRE(launch(rig) == CUBIST_STATUS_OK); }, launch},
      {"a launch into a capture",
       [](CRig& rig) {
         REQUIRE(prepare(rig) == CUBIST_STATUS_OK);
         fake_cuda().begin_capture(static_cast<cubist::cuda::CUstream>(rig.stream));
       },
       launch},
      {"prepare", nothing, prepare},
      {"fused scales", nothing, fuse},
      {"a cleared workspace", nothing,
       [](CRig& rig) {
         return cubist_selection_clear_workspace(rig.selection, rig.args.workspace,
                                                 rig.args.workspace_size, rig.stream);
       }},
  };
}

/// What the header promises for an error of a call; written down apart from the library's table.
cubist_status expected_status(const std::string& call, int error) {
  if (call == "cuThreadExchangeStreamCaptureMode") return CUBIST_STATUS_OK;  // nothing hangs on it
  if (call == "cuModuleGetFunction" && error == 500) return CUBIST_STATUS_MANIFEST_INVALID;
  if (call == "cuInit" && error == 3) return CUBIST_STATUS_FORKED;
  for (const int gone : {34, 46, 100, 802, 803, 804}) {
    if (error == gone) return CUBIST_STATUS_DRIVER_UNAVAILABLE;
  }
  if (error == 209 || error == 222) return CUBIST_STATUS_DEVICE_MISMATCH;
  return error >= 900 && error <= 908 ? CUBIST_STATUS_CAPTURE : CUBIST_STATUS_DRIVER_ERROR;
}

std::vector<std::string> calls_of(const Scenario& scenario, const std::string& store) {
  CRig rig(store);
  scenario.before(rig);
  fake_cuda().forget_calls();
  INFO(scenario.name);
  REQUIRE(scenario.act(rig) == CUBIST_STATUS_OK);
  std::vector<std::string> names;
  for (const auto& call : fake_cuda().calls()) names.push_back(call.name);
  return names;
}

void inject(const Scenario& scenario, const std::string& store, std::size_t nth,
            const std::string& call, int error) {
  {
    CRig rig(store);
    scenario.before(rig);
    fake_cuda().forget_calls();
    fake_cuda().fail_nth(static_cast<int>(nth), static_cast<cubist::cuda::CUresult>(error));
    const cubist_status expected = expected_status(call, error);
    const cubist_status status = scenario.act(rig);
    const std::string message = cubist_last_error_message();
    INFO(scenario.name << ": " << call << " answers " << error << ": " << message);
    REQUIRE(status == expected);
    if (status != CUBIST_STATUS_OK && status != CUBIST_STATUS_MANIFEST_INVALID) {
      CHECK_THAT(message, Catch::Matchers::Contains(call) &&
                              Catch::Matchers::Contains("(" + std::to_string(error) + ")"));
    }
    if (status != CUBIST_STATUS_OK) CHECK(fake_cuda().launches().empty());
    REQUIRE(scenario.act(rig) == CUBIST_STATUS_OK);
    CHECK(fake_cuda().leaks().context_depth == 1);
  }
  CHECK(fake_cuda().leaks() == FakeLeaks{0, 0, 0, 1});
}

}  // namespace

TEST_CASE("every CUDA error at every call: right status, nothing leaked, the next one fine") {
  const cubist::test::Scratch store;
  std::size_t injected = 0;
  for (const Scenario& scenario : scenarios()) {
    const std::vector<std::string> calls = calls_of(scenario, store.path());
    for (std::size_t nth = 1; nth <= calls.size(); ++nth) {
      for (const int error : all_cuda_errors()) {
        inject(scenario, store.path(), nth, calls[nth - 1], error);
        ++injected;
      }
    }
    std::printf("%s: %zu driver calls\n", scenario.name.c_str(), calls.size());
  }
  std::printf("%zu errors injected\n", injected);
  CHECK(injected > 2000);
}

TEST_CASE("errors while handles are destroyed neither crash nor are reported") {
  const cubist::test::Scratch store;
  for (const std::string call :
       {"cuCtxGetId", "cuCtxPushCurrent", "cuModuleUnload", "cuCtxPopCurrent"}) {
    for (const int error : all_cuda_errors()) {
      CRig rig(store.path());
      REQUIRE(launch(rig) == CUBIST_STATUS_OK);
      fake_cuda().fail_function(call, static_cast<cubist::cuda::CUresult>(error));
      CHECK(cubist_selection_destroy(rig.selection) == CUBIST_STATUS_OK);
      CHECK(cubist_runtime_destroy(rig.runtime) == CUBIST_STATUS_OK);
      rig.selection = nullptr;
      rig.runtime = nullptr;
    }
  }
}
