#pragma once

#include <cstdint>

#include "base/result.h"
#include "launcher/context_table.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// Whether the kernel can be loaded on the context's device at all: architecture, driver version
/// and shared memory. Pure.
///
/// min_driver  CUDA version that the kernel's manifest asks of the driver; 0: it does not say
/// errors      kDeviceMismatch: the message names kernel, device, need and limit
Status check_kernel_fits(const KernelRecord& record, std::int32_t min_driver,
                         const ContextInfo& context);

/// What can be known of plan and device before a kernel is fetched or loaded: architecture, driver
/// version, shared memory, cluster support, and the driver's limits on grid and block. Pure.
///
/// errors  kDeviceMismatch: as check_kernel_fits; no clusters
///         kInternal: a geometry no device takes, or more shared memory than the kernel's traits
///         say
Status check_plan_fits(const LaunchPlan& plan, std::int32_t min_driver, const ContextInfo& context);

}  // namespace cubist::launcher
