#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "launcher/call_args.h"
#include "launcher/launcher.h"
#include "model/attention_problem.h"
#include "model/launch_plan.h"
#include "runtime/aux_launcher.h"

namespace cubist::runtime {

/// The records of the kernels that a plan launches behind its main kernel, for a device of this
/// compute capability: a separate reduction, an LSE kernel. Those no manifest has are left out.
std::vector<const KernelRecord*> followers(const AuxLauncher& aux, const LaunchPlan& plan,
                                           std::uint32_t sm);

/// What is launched behind a main kernel; nulls where the plan does not need it.
struct ReadyFollowers {
  launcher::ReadyPlan reduction;
  launcher::ReadyPlan lse;
};

/// Loads what a trtllm-gen plan launches behind its main kernel, into the same context: the
/// separate reduction and the LSE kernel, each where the plan needs it.
///
/// stream  of the launch that will follow, which must not be captured then; null: there is none
/// errors  kUnsupported: our reduction does not serve the plan; of AuxLauncher::prepare
Result<ReadyFollowers> prepare_followers(launcher::Launcher& launcher, AuxLauncher& aux,
                                         const AttentionProblem& problem,
                                         const launcher::ReadyPlan& ready,
                                         const cuda::CUstream* stream);

/// Queues a trtllm-gen call: main kernel, then reduction, then LSE, each with the plan's PDL
/// attribute. Everything is checked, loaded and filled in before the first is queued, and between
/// them the driver is asked nothing.
///
/// problem  as trtllm_gen::prepare_problem gives it
/// num_sms  of the device that was selected for
/// errors   of make_call, ParamBlock, fill_reduction_params, fill_lse_params, prepare_followers and
///          launch_kernel
Status launch_trtllm_gen(launcher::Launcher& launcher, AuxLauncher& aux,
                         const launcher::ReadyPlan& ready, const AttentionProblem& problem,
                         std::int32_t num_sms, const launcher::CallArgs& args,
                         cuda::CUstream stream);

}  // namespace cubist::runtime
