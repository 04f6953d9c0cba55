#include "launcher/launch.h"

namespace cubist::launcher {

LaunchConfig::LaunchConfig(const LaunchPlan& plan, cuda::CUstream stream)
    : config_{plan.grid[0],  plan.grid[1], plan.grid[2], plan.block[0], plan.block[1],
              plan.block[2], plan.smem,    stream,       attributes_,   0} {
  if (plan.cluster[0] * plan.cluster[1] * plan.cluster[2] > 1) {
    add(cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).value.clusterDim = {
        plan.cluster[0], plan.cluster[1], plan.cluster[2]};
    add(cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
        .value.clusterSchedulingPolicyPreference =
        static_cast<cuda::CUclusterSchedulingPolicy>(plan.cluster_sched_policy);
  }
  if (plan.pdl) {
    add(cuda::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        .value.programmaticStreamSerializationAllowed = 1;
  }
}

cuda::CUlaunchAttribute& LaunchConfig::add(cuda::CUlaunchAttributeID id) {
  cuda::CUlaunchAttribute& attribute = attributes_[config_.numAttrs++];
  attribute = {};
  attribute.id = id;
  return attribute;
}

Status launch_kernel(const driver::Driver& driver, cuda::CUfunction function,
                     const LaunchPlan& plan, const void* params, cuda::CUstream stream) {
  const LaunchConfig config(plan, stream);
  void* parameters[] = {const_cast<void*>(params)};  // the driver reads only
  const cuda::CUresult result =
      driver.table().cuLaunchKernelEx(&config.get(), function, parameters, nullptr);
  if (result == cuda::CUDA_SUCCESS) return {};
  Status status = driver.check(result, "cuLaunchKernelEx");
  return forward_error(status, fmt::format("kernel '{}'", plan.record->name));
}

Result<int> max_active_clusters(const driver::Driver& driver, cuda::CUfunction function,
                                const LaunchPlan& plan) {
  const LaunchConfig config(plan, nullptr);
  int count = 0;
  Status status =
      driver.check(driver.table().cuOccupancyMaxActiveClusters(&count, function, &config.get()),
                   "cuOccupancyMaxActiveClusters");
  if (!status) return forward_error(status, fmt::format("kernel '{}'", plan.record->name));
  return count;
}

}  // namespace cubist::launcher
