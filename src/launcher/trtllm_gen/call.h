#pragma once

#include "base/result.h"
#include "launcher/call_args.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/attention_problem.h"
#include "model/launch_plan.h"

namespace cubist::trtllm_gen {

/// One call as the parameter blocks of main, reduction and LSE kernels are filled from it.
struct Call {
  AttentionProblem problem;  ///< prepared; scales and scale-tensor fields are the call's
  Addresses addresses;
};

/// Checks every address, the output, the scales and the workspace of a call, and gives them the
/// family's names. Strides and extents are held against the descriptors' rules when those are made.
/// Pure; allocates nothing unless it fails.
///
/// problem  as prepare_problem gives it
/// num_sms  of the device
/// errors   kInvalidArgument: names the field, its value and the rule
Result<Call> make_call(const AttentionProblem& problem, const LaunchPlan& plan,
                       std::int32_t num_sms, const launcher::CallArgs& args);

}  // namespace cubist::trtllm_gen
