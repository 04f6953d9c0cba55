#pragma once

#include <array>
#include <cstdint>

#include "model/kernel_record.h"

namespace cubist {

/// Why a plan is not the published rule's own choice.
enum class FallbackReason : std::uint8_t {
  kNone = 0,
  kRuleFindsNoKernel,     ///< the published rule asks for a kernel that was never built
  kRuleSplitsHeadGroups,  ///< the published rule would put heads of two KV groups into one CTA
  kRuleRefuses,           ///< the published rule refuses a problem that a kernel serves
};

/// The separate reduction over KV CTAs (multi_ctas_kv_mode 2), launched after the main kernel.
struct ReductionPlan {
  bool needed = false;
  std::array<std::uint32_t, 3> grid = {0, 0, 0};
  std::uint32_t block = 0;
  std::int32_t ctas_per_tile = 0;  ///< workers that share one tile's rows (k)
  std::int32_t num_head_ctas = 0;
  std::int32_t num_head_dim_ctas = 0;
  std::int32_t head_dim_per_cta = 0;
};

/// The kernel that turns softmax statistics into log-sum-exp.
struct LsePlan {
  bool needed = false;
  std::array<std::uint32_t, 3> grid = {0, 0, 0};
  std::uint32_t block = 0;
};

/// Everything about a launch that selection decides. Plain data; `record` belongs to the kernel
/// table.
struct LaunchPlan {
  const KernelRecord* record = nullptr;
  KernelFamily family = KernelFamily::kTrtllmGenFmha;
  HeuristicRevision revision = HeuristicRevision::kTrtllmGenFmha_0_6_13;
  ParamLayout param_layout = ParamLayout::kTrtllmGenFmha1280;

  std::array<std::uint32_t, 3> grid = {1, 1, 1};
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::uint32_t smem = 0;                  ///< dynamic shared memory, bytes
  std::uint32_t cluster_sched_policy = 0;  ///< 0 default, 1 spread (CUclusterSchedulingPolicy)
  bool pdl = false;

  std::int32_t batch = 1;  ///< sequences
  std::int32_t num_ctas_q = 1;
  std::int32_t num_ctas_kv = 1;
  std::int32_t num_tokens_per_cta_q = 1;
  std::int32_t num_heads_per_cta = 1;
  std::int32_t reshape_factor_kv = 1;

  /// Launch only if at least this many clusters of the plan's size fit at once; 0 = no
  /// precondition.
  std::int32_t min_active_clusters = 0;

  FallbackReason fallback = FallbackReason::kNone;
  ReductionPlan reduction;
  LsePlan lse;
};

/// Plans, best first: the launcher takes the first whose precondition holds. Never empty when made
/// by selector::select; fixed size, so that selection allocates nothing.
struct Selection {
  static constexpr std::uint32_t kMaxPlans = 4;
  std::array<LaunchPlan, kMaxPlans> plans;
  std::uint32_t num_plans = 0;

  const LaunchPlan& best() const { return plans[0]; }
};

}  // namespace cubist
