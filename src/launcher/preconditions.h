#pragma once

#include "base/result.h"
#include "launcher/context_table.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// What can be known of plan and device before a kernel is fetched or loaded: architecture, shared
/// memory, cluster support, and the driver's limits on grid and block. Pure.
///
/// errors  kDeviceMismatch: the message names kernel, device, need and limit
///         kInternal: a geometry no device takes
Status check_plan_fits(const LaunchPlan& plan, const ContextInfo& context);

}  // namespace cubist::launcher
