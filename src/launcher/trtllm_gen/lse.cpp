#include "launcher/trtllm_gen/lse.h"

#include "launcher/device_pointer.h"
#include "launcher/trtllm_gen/workspace.h"

namespace cubist::trtllm_gen {
namespace {

Status check_lse(const AttentionProblem& p, const LaunchPlan& plan, const Addresses& a) {
  if (!p.lse || !plan.lse.needed) {
    return fail(StatusCode::kInvalidArgument, "lse: the plan was made without it; select with lse");
  }
  const std::uint64_t threads = std::uint64_t{plan.lse.grid[0]} * plan.lse.block;
  const auto entries =
      static_cast<std::uint64_t>(p.sum_seq_q) * static_cast<std::uint64_t>(p.num_q_heads);
  if (p.sum_seq_q < 0 || p.num_q_heads <= 0 || threads < entries) {
    return fail(StatusCode::kInvalidArgument,
                "lse: {} threads for {} tokens of {} heads; one for each is needed", threads,
                p.sum_seq_q, p.num_q_heads);
  }
  if (p.lse_stride_tokens < 1 || p.lse_stride_heads < 1) {
    return fail(StatusCode::kInvalidArgument, "lse: strides {} and {}: must be at least 1 element",
                p.lse_stride_tokens, p.lse_stride_heads);
  }
  if (a.lse == 0 || a.lse % 4 != 0) {
    return fail(StatusCode::kInvalidArgument,
                "lse at {:#x}: a device address aligned to 4 bytes is needed", a.lse);
  }
  if (a.workspace == 0 || a.workspace % 16 != 0) {
    return fail(StatusCode::kInvalidArgument,
                "workspace at {:#x}: a device address aligned to 16 bytes is needed", a.workspace);
  }
  return {};
}

}  // namespace

Result<CubistLseParams> fill_lse_params(const AttentionProblem& problem, const LaunchPlan& plan,
                                        std::int32_t num_sms, const Addresses& addresses) {
  CUBIST_RETURN_IF_ERROR(check_lse(problem, plan, addresses));
  const Workspace workspace = carve_workspace(problem, plan, num_sms);
  if (workspace.softmax_stats == Workspace::kNone) {
    return fail(StatusCode::kInvalidArgument,
                "lse: revision {} leaves no softmax statistics in a {} call",
                to_string(plan.revision), to_string(problem.phase));
  }
  CubistLseParams params = {};
  params.softmax_stats =
      launcher::device_pointer<const float>(addresses.workspace + workspace.softmax_stats);
  params.lse = launcher::device_pointer<float>(addresses.lse);
  params.stride_tokens = problem.lse_stride_tokens;
  params.stride_heads = problem.lse_stride_heads;
  params.num_entries = problem.sum_seq_q * problem.num_q_heads;
  params.num_q_heads = problem.num_q_heads;
  return params;
}

}  // namespace cubist::trtllm_gen
