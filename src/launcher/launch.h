#pragma once

#include "base/result.h"
#include "driver/driver.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// A launch configuration with the attributes it points at, in the caller's frame: one launch, one
/// object, so that threads share nothing. Not to be copied, since the two belong together.
class LaunchConfig {
 public:
  /// Grid, block, shared memory and stream of the plan, and the attributes it needs: cluster and
  /// its scheduling policy where a cluster has more than one CTA, PDL where the plan says so.
  LaunchConfig(const LaunchPlan& plan, cuda::CUstream stream);
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  const cuda::CUlaunchConfig& get() const { return config_; }

 private:
  cuda::CUlaunchAttribute& add(cuda::CUlaunchAttributeID id);

  cuda::CUlaunchAttribute attributes_[3];
  cuda::CUlaunchConfig config_;
};

/// One cuLaunchKernelEx of a kernel with a single parameter block, which is copied before it
/// returns. `params` must have the bytes that the kernel declares.
///
/// errors  as the driver answers; an asynchronous fault of the kernel shows at a later call
Status launch_kernel(const driver::Driver& driver, cuda::CUfunction function,
                     const LaunchPlan& plan, const void* params, cuda::CUstream stream);

/// How many clusters of the plan's launch fit on the device at once.
Result<int> max_active_clusters(const driver::Driver& driver, cuda::CUfunction function,
                                const LaunchPlan& plan);

}  // namespace cubist::launcher
