#pragma once

#include <cstdint>

#include "base/result.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/attention_problem.h"
#include "model/aux_params.h"
#include "model/launch_plan.h"

namespace cubist::trtllm_gen {

/// Parameters of the LSE kernel; grid and block are the plan's, one thread an entry. It runs behind
/// the main kernel, or behind the reduction where there is one. LSE is base 2: log2 of the sum over
/// keys (and sink) of e^score; -inf for a token without keys.
///
/// problem  as prepare_problem gives it
/// num_sms  of the device
/// errors   kInvalidArgument: the plan has no LSE or too few threads, an address is missing or
///          misaligned, a stride below 1
Result<CubistLseParams> fill_lse_params(const AttentionProblem& problem, const LaunchPlan& plan,
                                        std::int32_t num_sms, const Addresses& addresses);

}  // namespace cubist::trtllm_gen
