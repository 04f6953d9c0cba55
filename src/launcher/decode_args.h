#pragma once

#include "base/result.h"
#include "launcher/call_args.h"
#include "model/attention_problem.h"
#include "model/decode_params.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// Checks one call of the cubist_decode family and fills its parameter block
/// (model/decode_params.h). Reads nothing behind the addresses. Pure; allocates nothing unless it
/// fails.
///
/// problem  with derived fields filled in (with_derived_fields)
/// plan     the selection's plan for that problem
/// errors   kInvalidArgument: names the field, its value and the rule; `params` is untouched then
Status fill_decode_params(const AttentionProblem& problem, const LaunchPlan& plan,
                          const CallArgs& args, CubistDecodeParams& params);

}  // namespace cubist::launcher
