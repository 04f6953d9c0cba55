// A launch of a kernel that is loaded already: no allocation. The driver here is a table of
// functions that do nothing, so that every allocation counted is ours.

#include <atomic>
#include <chrono>
#include <thread>

#include "allocation_counter.h"
#include "decode_call.h"
#include "launcher/decode_args.h"
#include "launcher/launch.h"
#include "launcher/launcher.h"
#include "support/catch.h"
#include "support/fake_cubin.h"

using namespace cubist;
using namespace cubist::cuda;

namespace {

int g_launches = 0;

driver::DriverTable quiet_driver() {
  driver::DriverTable table;
  table.cuInit = [](unsigned) { return CUDA_SUCCESS; };
  table.cuCtxGetId = [](CUcontext, unsigned long long* id) {
    *id = 7;
    return CUDA_SUCCESS;
  };
  table.cuCtxGetCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
  table.cuCtxGetDevice = [](CUdevice*) { return CUDA_SUCCESS; };
  table.cuDeviceGetCount = [](int* count) {
    *count = 1;
    return CUDA_SUCCESS;
  };
  table.cuDeviceGet = [](CUdevice*, int) { return CUDA_SUCCESS; };
  table.cuDeviceGetName = [](char*, int, CUdevice) { return CUDA_SUCCESS; };
  table.cuDeviceGetAttribute = [](int* value, CUdevice_attribute attribute, CUdevice) {
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
             : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
                                                                         : 232448;
    return CUDA_SUCCESS;
  };
  table.cuStreamIsCapturing = [](CUstream, CUstreamCaptureStatus* status) {
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  };
  table.cuModuleLoadData = [](CUmodule*, const void*) { return CUDA_SUCCESS; };
  table.cuModuleGetFunction = [](CUfunction*, CUmodule, const char*) { return CUDA_SUCCESS; };
  table.cuFuncSetAttribute = [](CUfunction, CUfunction_attribute, int) { return CUDA_SUCCESS; };
  table.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) {
    ++g_launches;
    return CUDA_SUCCESS;
  };
  table.cuCtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  table.cuCtxPopCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
  table.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  return table;
}

}  // namespace

/// A launch of `call` by a launcher over `table`.
Status launch_once(launcher::Launcher& launcher, launcher::ReadyMemo& memo,
                   const Selection& selection, const test::DecodeCall& call) {
  const CUstream stream = nullptr;
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          launcher.ready(selection, memo, &stream));
  CubistDecodeParams params;
  CUBIST_RETURN_IF_ERROR(
      launcher::fill_decode_params(call.problem, *ready.plan, call.args, params));
  return launcher::launch_kernel(launcher.driver(), ready.kernel->function, *ready.plan, &params,
                                 stream);
}

/// A launcher over `table` and a call whose kernel it can load.
struct WarmRig {
  explicit WarmRig(const driver::DriverTable& table)
      : launcher(std::make_shared<driver::Driver>(table), [this](const KernelRecord& record) {
          return VerifiedCubin::verify(bytes, record.sha256, bytes.size(), "");
        }) {
    call.record.sha256 = sha256(bytes);
    call.record.traits.arch = {90, SmArch::Kind::kSpecific};
    call.plan.block = {128, 1, 1};
    call.plan.pdl = true;
    selection.num_plans = 1;
    selection.plans[0] = call.plan;
  }
  Status launch() { return launch_once(launcher, memo, selection, call); }

  std::vector<std::uint8_t> bytes = test::fake_cubin(90, {"decode_one"});
  test::DecodeCall call;
  Selection selection;
  launcher::ReadyMemo memo;
  launcher::Launcher launcher;
};

TEST_CASE("a warm launch allocates nothing, from arguments to cuLaunchKernelEx") {
  WarmRig rig(quiet_driver());
  const std::uint64_t before_cold = test::allocation_count();
  REQUIRE(rig.launch().has_value());
  CHECK(test::allocation_count() > before_cold);  // the counter counts
  const std::uint64_t before = test::allocation_count();
  bool fine = true;
  for (int i = 0; i < 1000; ++i) fine = rig.launch().has_value() && fine;
  const std::uint64_t after = test::allocation_count();
  CHECK(after == before);
  CHECK(fine);
  CHECK(g_launches == 1001);
}

std::atomic<int> g_inside{0};
std::atomic<bool> g_met{false};

TEST_CASE("no lock is held while the driver launches: two threads are inside it at once") {
  driver::DriverTable table = quiet_driver();
  table.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) {
    ++g_inside;
    for (int wait = 0; wait < 10000 && !g_met; ++wait) {
      if (g_inside == 2) g_met = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --g_inside;
    return CUDA_SUCCESS;
  };
  WarmRig rig(table);
  std::thread other([&] { CHECK(rig.launch().has_value()); });
  CHECK(rig.launch().has_value());
  other.join();
  CHECK(g_met);
}
