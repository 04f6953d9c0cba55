#pragma once

#include <array>

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/call_args.h"
#include "launcher/tensor_map_spec.h"
#include "model/decode_params.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// What the persistent decode kernels copy K and V by, or MLA's K and Q: boxes of one head's tokens
/// of one page, or of a CTA's heads and tokens, in panels of 128 bytes a row at most, swizzled by
/// as much: 64 elements of 16 bits, 128 or (head_dim 64) 64 of 8.
///
///   K, V   dimensions   element of a panel, token of the page, panel, KV head, page
///          box          a panel's elements, min(page_size, 64) tokens, every panel (MLA, and pages
///          under
///                       64 tokens: one)
///   Q      dimensions   element of a panel, head, token, panel
///          box          a panel's elements, num_heads_per_cta heads, num_tokens_per_cta_q tokens
///
/// errors  kInvalidArgument: a stride or extent no tensor map can hold
Result<std::array<TensorMapSpec, 2>> describe_decode_maps(const AttentionProblem& problem,
                                                          const LaunchPlan& plan,
                                                          const CallArgs& args);

/// Encodes them into the parameter block where the plan's kernel is persistent; else does nothing.
/// No allocation unless it fails.
///
/// errors  as above; kDriverError: the driver refuses a map
Status encode_decode_maps(const driver::Driver& driver, const AttentionProblem& problem,
                          const LaunchPlan& plan, const CallArgs& args, CubistDecodeParams& params);

}  // namespace cubist::launcher
