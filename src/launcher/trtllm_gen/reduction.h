#pragma once

#include <cstdint>

#include "base/result.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/attention_problem.h"
#include "model/aux_params.h"
#include "model/dtype.h"
#include "model/launch_plan.h"

namespace cubist::trtllm_gen {

/// Whether our reduction kernels join the partial results of this plan's kernel: keeps kernels of
/// 64 or 128 rows and 128 keys a tile, 64 to 512 columns a CTA, and an O of Q's own type, or of
/// bf16, fp16 or e4m3 where Q is e4m3. Call it before the main kernel is launched.
///
/// problem  as prepare_problem gives it
/// errors   kUnsupported: names the value and what is served; also dynamic top-k lengths with
///          several tokens in a CTA, which have no common length
///          kInvalidArgument: the plan's reduction grid is not the one of its own tiles
Status check_reduction(const AttentionProblem& problem, const LaunchPlan& plan);

/// Parameters of the reduction; grid and block are the plan's. The device softmax scale is honoured
/// when the problem has one.
///
/// num_sms  of the device: it decides where partial O starts in the workspace
/// errors   check_reduction; kInvalidArgument: an address is missing or misaligned (named), dynamic
///          top-k without its lengths
Result<CubistReduceParams> fill_reduction_params(const AttentionProblem& problem,
                                                 const LaunchPlan& plan, std::int32_t num_sms,
                                                 const Addresses& addresses);

}  // namespace cubist::trtllm_gen
