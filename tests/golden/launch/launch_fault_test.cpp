// Every CUDA error at every driver call of a trtllm-gen call whose kernels are followed by others:
// nothing leaked, nothing half launched by what fails before the first kernel, the next call fine.

#include <cstdio>
#include <string>
#include <vector>

#include "launch_rig.h"
#include "recorded_call.h"
#include "runtime/selected.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using Catch::Matchers::Contains;
using test::fake_cuda;
using test::LaunchRig;
using test::RecordedCall;

/// The first recorded call of 0.6.13 behind whose main kernel that other one is launched.
RecordedCall call_with(const char* follower) {
  for (RecordedCall& call : test::read_recorded_calls("0.6.13")) {
    if (!call.recording[follower].is_null()) return std::move(call);
  }
  FAIL("no such call is recorded");
  return {};
}

/// One call, launched again and again.
struct Try {
  explicit Try(const RecordedCall& call) : rig("0.6.13", {call.kernel()}) {
    selected = rig.runtime().select(call.value.problem, call.value.device).value();
    args = call.args();
    args.workspace_size = selected->workspace()->size;
  }
  /// A context in which nothing is loaded.
  void start_cold() {
    fake_cuda().set_current(fake_cuda().create_context(0));
    stream = fake_cuda().create_stream();
  }
  void start(bool warm) {
    if (!warm || stream == nullptr) start_cold();
    if (warm) REQUIRE(launch().has_value());
    fake_cuda().forget_calls();
  }
  Status launch() { return selected->launch(args, stream); }

  LaunchRig rig;
  std::unique_ptr<runtime::Selected> selected;
  launcher::CallArgs args;
  cuda::CUstream stream = nullptr;
};

void inject(Try& one, const std::string& call, std::size_t nth, int error) {
  fake_cuda().fail_nth(static_cast<int>(nth), static_cast<cuda::CUresult>(error));
  const Status status = one.launch();
  INFO(call << " answers " << error << ": " << (status ? "" : status.error().message()));
  if (call == "cuThreadExchangeStreamCaptureMode") {
    CHECK(status.has_value());  // nothing hangs on it
    return;
  }
  REQUIRE_FALSE(status.has_value());
  const bool is_name = call == "cuModuleGetFunction" && error == 500;
  if (!is_name) CHECK_THAT(status.error().message(), Contains(call));
  // What is asked of the driver before the first kernel keeps all of them from being queued.
  if (call != "cuLaunchKernelEx") CHECK(fake_cuda().launches().empty());
}

std::size_t inject_all(const RecordedCall& call, bool warm) {
  std::vector<std::string> names;
  Try one(call);
  one.start_cold();
  REQUIRE(one.launch().has_value());  // cuInit is behind us: a launch's own calls are at stake
  const int num_modules = fake_cuda().leaks().modules;
  one.start(warm);
  REQUIRE(one.launch().has_value());
  for (const auto& made : fake_cuda().calls()) names.push_back(made.name);
  std::size_t injected = 0;
  int contexts = warm ? 1 : 2;
  for (std::size_t nth = 1; nth <= names.size(); ++nth) {
    for (const int error : test::all_cuda_errors()) {
      one.start(warm);
      inject(one, names[nth - 1], nth, error);
      REQUIRE(one.launch().has_value());
      contexts += warm ? 0 : 1;
      // As many a context as without the error.
      CHECK(fake_cuda().leaks().modules == contexts * num_modules);
      ++injected;
    }
  }
  CHECK(fake_cuda().leaks().allocations == 0);
  std::printf("%s, %s: %zu driver calls\n", call.id().c_str(), warm ? "warm" : "cold",
              names.size());
  return injected;
}

}  // namespace

TEST_CASE(
    "CUDA errors at every driver call of trtllm-gen calls with a reduction and an LSE kernel") {
  std::size_t injected = 0;
  for (const char* follower : {"reduction_kernel", "lse_kernel"}) {
    const RecordedCall call = call_with(follower);
    for (const bool warm : {false, true}) injected += inject_all(call, warm);
  }
  std::printf("%zu errors injected\n", injected);
  CHECK(injected > 1000);
}
