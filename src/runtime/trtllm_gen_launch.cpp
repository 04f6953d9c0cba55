#include "runtime/trtllm_gen_launch.h"

#include "launcher/launch.h"
#include "launcher/trtllm_gen/call.h"
#include "launcher/trtllm_gen/lse.h"
#include "launcher/trtllm_gen/param_block.h"
#include "launcher/trtllm_gen/reduction.h"

namespace cubist::runtime {
namespace {

using launcher::AuxKernel;

AuxKernel reduction_of(const LaunchPlan& plan) {
  return {AuxKernel::Kind::kReduction, plan.record->traits.dtype_o};
}

constexpr AuxKernel kLse = {AuxKernel::Kind::kLse, Dtype::kUnknown};

/// What the kernels of one call are told.
struct Blocks {
  trtllm_gen::ParamBlock main;
  CubistReduceParams reduction = {};
  CubistLseParams lse = {};
};

Status fill_blocks(const AttentionProblem& problem, const LaunchPlan& plan, std::int32_t num_sms,
                   const launcher::CallArgs& args, Blocks& blocks) {
  CUBIST_ASSIGN_OR_RETURN(const trtllm_gen::Call call,
                          trtllm_gen::make_call(problem, plan, num_sms, args));
  CUBIST_RETURN_IF_ERROR(blocks.main.fill(call.problem, plan, num_sms, call.addresses));
  if (plan.reduction.needed) {
    CUBIST_ASSIGN_OR_RETURN(blocks.reduction, trtllm_gen::fill_reduction_params(
                                                  call.problem, plan, num_sms, call.addresses));
  }
  if (plan.lse.needed) {
    CUBIST_ASSIGN_OR_RETURN(
        blocks.lse, trtllm_gen::fill_lse_params(call.problem, plan, num_sms, call.addresses));
  }
  return {};
}

}  // namespace

std::vector<const KernelRecord*> followers(const AuxLauncher& aux, const LaunchPlan& plan,
                                           std::uint32_t sm) {
  std::vector<const KernelRecord*> found;
  const auto take = [&](bool needed, const AuxKernel& kernel) {
    if (!needed) return;
    for (const KernelRecord* record : aux.records(kernel)) {
      if (runs_on(record->traits.arch, sm)) found.push_back(record);
    }
  };
  take(plan.reduction.needed, reduction_of(plan));
  take(plan.lse.needed, kLse);
  return found;
}

Result<ReadyFollowers> prepare_followers(launcher::Launcher& launcher, AuxLauncher& aux,
                                         const AttentionProblem& problem,
                                         const launcher::ReadyPlan& ready,
                                         const cuda::CUstream* stream) {
  const LaunchPlan& plan = *ready.plan;
  ReadyFollowers found;
  if (plan.reduction.needed) {
    CUBIST_RETURN_IF_ERROR(trtllm_gen::check_reduction(problem, plan));
    CUBIST_ASSIGN_OR_RETURN(found.reduction,
                            aux.prepare(launcher, reduction_of(plan), *ready.context, stream));
  }
  if (plan.lse.needed) {
    CUBIST_ASSIGN_OR_RETURN(found.lse, aux.prepare(launcher, kLse, *ready.context, stream));
  }
  return found;
}

Status launch_trtllm_gen(launcher::Launcher& launcher, AuxLauncher& aux,
                         const launcher::ReadyPlan& ready, const AttentionProblem& problem,
                         std::int32_t num_sms, const launcher::CallArgs& args,
                         cuda::CUstream stream) {
  const LaunchPlan& plan = *ready.plan;
  const driver::Driver& driver = launcher.driver();
  CUBIST_ASSIGN_OR_RETURN(const ReadyFollowers behind,
                          prepare_followers(launcher, aux, problem, ready, &stream));
  Blocks blocks;
  CUBIST_RETURN_IF_ERROR(fill_blocks(problem, plan, num_sms, args, blocks));
  CUBIST_RETURN_IF_ERROR(blocks.main.encode(driver));
  CUBIST_RETURN_IF_ERROR(launcher::launch_kernel(driver, ready.kernel->function, plan,
                                                 blocks.main.bytes().data(), stream));
  if (plan.reduction.needed) {
    const AuxGeometry geometry = {plan.reduction.grid, plan.reduction.block, plan.pdl};
    CUBIST_RETURN_IF_ERROR(
        AuxLauncher::launch(driver, behind.reduction, geometry, &blocks.reduction, stream));
  }
  if (!plan.lse.needed) return {};
  const AuxGeometry geometry = {plan.lse.grid, plan.lse.block, plan.pdl};
  return AuxLauncher::launch(driver, behind.lse, geometry, &blocks.lse, stream);
}

}  // namespace cubist::runtime
