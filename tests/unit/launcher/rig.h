#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "driver/driver.h"
#include "launcher/launcher.h"
#include "support/catch.h"
#include "support/fake_cubin.h"
#include "support/fake_libcuda.h"

namespace cubist::test {

/// The stand-in with one H200 and a current context, a kernel for it, and a plan to launch it.
struct Rig {
  Rig() : Rig(90, {"decode_one"}) {}
  Rig(int cubin_sm, const std::vector<std::string>& functions)
      : bytes(fake_cubin(cubin_sm, functions)) {
    fake_cuda().reset();
    driver = driver::Driver::open({fake_libcuda_path()}).value();
    // The application's own context, made before anything of ours runs.
    REQUIRE(driver->table().cuInit(0) == cuda::CUDA_SUCCESS);
    context = fake_cuda().create_context(0);
    fake_cuda().set_current(context);
    stream = fake_cuda().create_stream();
    fake_cuda().forget_calls();

    record.name = "decode_one";
    record.path = "decode_one.cubin";
    record.sha256 = sha256(bytes);
    record.size_bytes = bytes.size();
    record.traits.arch = {90, SmArch::Kind::kSpecific};
    record.traits.smem = 65536;
    selection.num_plans = 1;
    selection.plans[0] = plan_of(record);
  }

  static LaunchPlan plan_of(const KernelRecord& record) {
    LaunchPlan plan;
    plan.record = &record;
    plan.family = KernelFamily::kCubistDecode;
    plan.param_layout = ParamLayout::kCubistDecode1;
    plan.grid = {4, 8, 2};
    plan.block = {128, 1, 1};
    plan.smem = record.traits.smem;
    plan.pdl = true;
    return plan;
  }

  launcher::CubinSource source() {
    return [this](const KernelRecord& wanted) -> Result<VerifiedCubin> {
      ++cubins_asked;
      return VerifiedCubin::verify(bytes, wanted.sha256, wanted.size_bytes, wanted.name);
    };
  }

  std::unique_ptr<launcher::Launcher> launcher() {
    return std::make_unique<launcher::Launcher>(driver, source());
  }

  const LaunchPlan& plan() const { return selection.plans[0]; }

  std::vector<std::uint8_t> bytes;
  std::shared_ptr<driver::Driver> driver;
  cuda::CUcontext context = nullptr;
  cuda::CUstream stream = nullptr;
  KernelRecord record;
  Selection selection;
  std::atomic<int> cubins_asked{0};
};

inline constexpr FakeLeaks kNothingHeld{0, 0, 0, 1};  // the test's own context is current

}  // namespace cubist::test
