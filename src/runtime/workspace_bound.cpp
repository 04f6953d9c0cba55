#include <algorithm>

#include "launcher/decode_workspace.h"
#include "launcher/trtllm_gen/prepare.h"
#include "launcher/trtllm_gen/workspace.h"
#include "runtime/runtime.h"
#include "runtime/selected.h"
#include "selector/decode_costs.h"
#include "selector/geometry.h"
#include "selector/request.h"
#include "selector/select.h"

namespace cubist::runtime {
namespace {

/// Whether some problem of the range may select the kernel: what lengths never change is equal.
bool may_serve(const AttentionProblem& problem, const DeviceProfile& device,
               const KernelTraits& traits) {
  return runs_on(traits.arch, device.sm) && traits.dtype_q == problem.dtype_q &&
         traits.dtype_k == problem.dtype_k && traits.dtype_v == problem.dtype_v &&
         writes(traits, problem.dtype_o) && traits.head_dim_qk == problem.head_dim_qk &&
         traits.head_dim_vo == problem.head_dim_vo;
}

bool serves_phase(Phase phase, const KernelTraits& traits) {
  const bool context = traits.kernel_type == KernelType::kContext;
  const bool separate = traits.qkv_layout == QkvLayout::kSeparate;
  return context == (phase != Phase::kDecode) && separate == (phase == Phase::kRagged);
}

/// CTAs of a batch-invariant launch of a static kernel, which are not bounded by the SMs.
std::int64_t max_invariant_ctas(const AttentionProblem& largest, const KernelTraits& traits) {
  const std::int64_t heads = largest.num_q_heads / largest.num_kv_heads;
  const std::int64_t tokens = std::max<std::int64_t>(1, traits.tile_q / heads);
  const std::int64_t columns = selector::ceil_div(largest.max_q_len, tokens) *
                               largest.num_kv_heads * selector::ceil_div(heads, traits.tile_q);
  const std::int32_t window =
      largest.window_left == -1 ? selector::kUnlimited : largest.window_left + 1;
  return columns * largest.batch *
         selector::invariant_split(largest.max_kv_len, largest.max_q_len, window,
                                   largest.num_kv_heads);
}

/// What every launch of one kernel in the range needs at most.
Result<WorkspaceNeed> bound_of(const Pack& pack, const KernelTraits& traits,
                               const selector::DecodeModel& model, const AttentionProblem& largest,
                               std::int32_t num_sms) {
  if (pack.family == KernelFamily::kCubistDecode) {
    const std::int64_t ctas = largest.batch_invariant
                                  ? max_invariant_ctas(largest, traits)
                                  : selector::max_split_ctas(model, traits, num_sms);
    CUBIST_ASSIGN_OR_RETURN(const launcher::DecodeWorkspace bound,
                            launcher::decode_workspace_bound(traits, ctas, largest.batch));
    return WorkspaceNeed{bound.size, bound.counters_size, launcher::kWorkspaceAlignment};
  }
  const trtllm_gen::Workspace bound =
      trtllm_gen::bound_workspace(largest, pack.revision, traits, num_sms);
  return WorkspaceNeed{bound.required_bytes, bound.counters_bytes, launcher::kWorkspaceAlignment};
}

}  // namespace

Result<WorkspaceNeed> Runtime::workspace_bound(const AttentionProblem& largest,
                                               const DeviceProfile& device) const {
  // That the largest problem itself is sound and served is the selector's to say.
  CUBIST_RETURN_IF_ERROR(choose(largest, device));
  const selector::DecodeModel& model = overrides_ && overrides_->file().decode_model
                                           ? *overrides_->file().decode_model
                                           : selector::shipped_decode_model();
  AttentionProblem problem = trtllm_gen::prepare_problem(largest);
  problem.sum_seq_q = std::max(problem.sum_seq_q, std::int64_t{problem.batch} * problem.max_q_len);
  WorkspaceNeed need;
  need.alignment = launcher::kWorkspaceAlignment;
  for (const Manifest& manifest : manifests_) {
    for (const Pack& pack : manifest.packs) {
      if (pack.family == KernelFamily::kCubistAux) continue;
      for (const KernelRecord& record : pack.kernels) {
        const KernelTraits& traits = record.traits;
        if (problem.batch_invariant && traits.scheduler != TileScheduler::kStatic) continue;
        if (!may_serve(problem, device, traits) || !serves_phase(problem.phase, traits)) continue;
        CUBIST_ASSIGN_OR_RETURN(const WorkspaceNeed bound,
                                bound_of(pack, traits, model, problem, device.num_sms));
        need.size = std::max(need.size, bound.size);
        need.zero_size = std::max(need.zero_size, bound.zero_size);
      }
    }
  }
  return need;
}

}  // namespace cubist::runtime
