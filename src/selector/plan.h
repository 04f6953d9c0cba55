#pragma once

#include "model/launch_plan.h"
#include "selector/geometry.h"
#include "selector/kernel_table.h"

namespace cubist::selector {

/// Writes the launch of a trtllm-gen kernel with this grid: attributes, counts, and the kernels
/// that follow it. `out` may hold an older plan.
void fill_plan(const PackView& pack, const Request& request, const KernelRecord& record,
               const CtaGrid& grid, FallbackReason fallback, LaunchPlan& out);

/// Rows of KV that one row of the K and V tensor maps holds; above 1 only for small heads of
/// unswizzled types in dense pages.
std::int32_t reshape_factor_kv(const Request& request, const KernelTraits& traits,
                               ParamLayout layout);

}  // namespace cubist::selector
