// A launch of a kernel that is loaded already: no allocation. The driver here is a table of
// functions that do nothing, so that every allocation counted is ours.

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

TEST_CASE("a warm launch allocates nothing, from arguments to cuLaunchKernelEx") {
  test::DecodeCall call;
  const auto bytes = test::fake_cubin(90, {"decode_one"});
  call.record.sha256 = sha256(bytes);
  call.record.traits.arch = {90, SmArch::Kind::kSpecific};
  call.plan.block = {128, 1, 1};
  call.plan.pdl = true;
  Selection selection;
  selection.num_plans = 1;
  selection.plans[0] = call.plan;
  launcher::Launcher launcher(
      std::make_shared<driver::Driver>(quiet_driver()), [&](const KernelRecord& record) {
        return VerifiedCubin::verify(bytes, record.sha256, bytes.size(), "");
      });
  launcher::ReadyMemo memo;
  const CUstream stream = nullptr;
  const auto launch = [&]() -> Status {
    CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                            launcher.ready(selection, memo, &stream));
    CubistDecodeParams params;
    CUBIST_RETURN_IF_ERROR(
        launcher::fill_decode_params(call.problem, *ready.plan, call.args, params));
    return launcher::launch_kernel(launcher.driver(), ready.kernel->function, *ready.plan, &params,
                                   stream);
  };

  const std::uint64_t before_cold = test::allocation_count();
  REQUIRE(launch().has_value());
  CHECK(test::allocation_count() > before_cold);  // the counter counts
  const std::uint64_t before = test::allocation_count();
  bool fine = true;
  for (int i = 0; i < 1000; ++i) fine = launch().has_value() && fine;
  const std::uint64_t after = test::allocation_count();
  CHECK(after == before);
  CHECK(fine);
  CHECK(g_launches == 1001);
}
