#include "launcher/preconditions.h"

#include <cstdint>

#include "model/cuda_version.h"
#include "model/launch_limits.h"

namespace cubist::launcher {
namespace {

// Source: CUDA C++ Programming Guide, technical specifications per compute capability.
constexpr std::uint64_t kMaxThreads = 1024;
constexpr std::uint64_t kMaxClusterCtas = 16;  // above 8 needs the non-portable attribute
constexpr std::uint32_t kFirstSmWithClusters = 90;

std::uint64_t product(const std::array<std::uint32_t, 3>& size) {
  return std::uint64_t{size[0]} * size[1] * size[2];
}

std::string text(const std::array<std::uint32_t, 3>& size) {
  return fmt::format("{}x{}x{}", size[0], size[1], size[2]);
}

Status check_geometry(const LaunchPlan& plan) {
  const auto& grid = plan.grid;
  if (product(grid) == 0 || grid[0] > kMaxGridX || grid[1] > kMaxGridYz || grid[2] > kMaxGridYz) {
    return fail(StatusCode::kInternal, "kernel '{}': no grid can be {}; the limits are {}x{}x{}",
                plan.record->name, text(grid), kMaxGridX, kMaxGridYz, kMaxGridYz);
  }
  if (product(plan.block) == 0 || product(plan.block) > kMaxThreads) {
    return fail(StatusCode::kInternal, "kernel '{}': no block can be {}; the limit is {} threads",
                plan.record->name, text(plan.block), kMaxThreads);
  }
  bool divides = product(plan.cluster) > 0 && product(plan.cluster) <= kMaxClusterCtas;
  for (std::size_t i = 0; i < 3; ++i) divides = divides && grid[i] % plan.cluster[i] == 0;
  if (!divides) {
    return fail(StatusCode::kInternal,
                "kernel '{}': cluster {} must divide grid {} and hold at most {} CTAs",
                plan.record->name, text(plan.cluster), text(grid), kMaxClusterCtas);
  }
  return {};
}

}  // namespace

Status check_kernel_fits(const KernelRecord& record, std::int32_t min_driver,
                         const ContextInfo& context) {
  const DeviceProfile& device = context.profile;
  if (!runs_on(record.traits.arch, device.sm)) {
    return fail(StatusCode::kDeviceMismatch,
                "kernel '{}' is for {}, but device {} ('{}') is sm_{}; select for this device",
                record.name, to_string(record.traits.arch), context.ordinal, device.name,
                device.sm);
  }
  if (min_driver > context.driver_version) {
    return fail(StatusCode::kDeviceMismatch,
                "kernel '{}' needs a driver for CUDA {} or later, but this one supports CUDA {}; "
                "update the NVIDIA driver, or use kernels built with older tools",
                record.name, cuda_version_text(min_driver),
                cuda_version_text(context.driver_version));
  }
  if (record.traits.smem > device.max_smem_optin) {
    return fail(
        StatusCode::kDeviceMismatch,
        "kernel '{}' needs {} bytes of shared memory, device {} ('{}') gives a block at most "
        "{}",
        record.name, record.traits.smem, context.ordinal, device.name, device.max_smem_optin);
  }
  return {};
}

Status check_plan_fits(const LaunchPlan& plan, std::int32_t min_driver,
                       const ContextInfo& context) {
  const KernelRecord& record = *plan.record;
  const DeviceProfile& device = context.profile;
  CUBIST_RETURN_IF_ERROR(check_kernel_fits(record, min_driver, context));
  if (plan.smem > record.traits.smem) {
    return fail(StatusCode::kInternal,
                "kernel '{}' was planned with {} bytes of shared memory; its manifest says {}",
                record.name, plan.smem, record.traits.smem);
  }
  CUBIST_RETURN_IF_ERROR(check_geometry(plan));
  if (product(plan.cluster) > 1 && device.sm < kFirstSmWithClusters) {
    return fail(
        StatusCode::kDeviceMismatch,
        "kernel '{}' is launched in clusters of {} CTAs, which device {} ('{}', sm_{}) does "
        "not have",
        record.name, product(plan.cluster), context.ordinal, device.name, device.sm);
  }
  return {};
}

}  // namespace cubist::launcher
