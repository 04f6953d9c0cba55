#pragma once

#include "model/launch_plan.h"
#include "selector/geometry.h"

namespace cubist::selector {

/// Output columns of one partial result: a pair of CTAs writes both halves as one.
std::int32_t reduction_columns(const KernelTraits& traits);

/// Whether the reduction after a kernel of multi_ctas_kv_mode 2 exists for these tiles, columns and
/// types: Keeps, tile_q 64 or 128, tile_kv 128, 64..512 columns, no e2m1 output.
bool reduction_supports(const KernelTraits& traits);

/// The launch that adds up the partial results of `grid`: one block per tile, several where the
/// device has room, each with its share of a tile's rows.
void plan_reduction(const Request& request, const KernelTraits& traits, const CtaGrid& grid,
                    ReductionPlan& out);

/// The launch that turns softmax statistics into log-sum-exp: one thread per token and query head.
void plan_lse(const Request& request, LsePlan& out);

}  // namespace cubist::selector
