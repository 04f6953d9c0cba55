#include "selector/plan.h"

#include <algorithm>

#include "selector/reduction.h"

namespace cubist::selector {
namespace {

// CU_CLUSTER_SCHEDULING_POLICY_DEFAULT and _SPREAD.
constexpr std::uint32_t kPolicyDefault = 0;
constexpr std::uint32_t kPolicySpread = 1;

std::int32_t rows_as_tokens(const Request& request, const KernelTraits& traits) {
  if (traits.kernel_type == KernelType::kContext) return traits.tile_q;
  if (!traits.groups_tokens_heads_q) return 1;
  return traits.tile_q / std::min<std::int32_t>(traits.tile_q, request.heads_per_kv);
}

}  // namespace

std::int32_t reshape_factor_kv(const Request& request, const KernelTraits& traits,
                               ParamLayout layout) {
  if (!request.is_paged() || traits.head_dim_qk != traits.head_dim_vo) return 1;
  if (traits.dtype_k == traits.dtype_q) return 1;
  // FP4 KV that the tensor memory path unpacks is swizzled, like types equal to Q's.
  const bool unpacked = traits.dtype_k == Dtype::kE2m1 && traits.dtype_q == Dtype::kE4m3 &&
                        traits.head_dim_qk >= 128 &&
                        traits.kernel_type == KernelType::kSwapsMmaAbGeneration;
  if (unpacked) return 1;
  // Rows of several tokens need tokens that follow one another; the older release did not look.
  if (layout == ParamLayout::kTrtllmGenFmha1280 && request.kv_stride_tokens != traits.head_dim_qk) {
    return 1;
  }
  const auto head_dim = static_cast<std::int32_t>(traits.head_dim_qk);
  const auto bits = static_cast<std::int32_t>(dtype_bits(traits.dtype_k));
  const std::int32_t keys_per_box = std::min<std::int32_t>(request.page_size, traits.tile_kv);
  return std::max(1,
                  std::min({128 / head_dim, 128 / std::max(1, head_dim * bits / 8), keys_per_box}));
}

void fill_plan(const PackView& pack, const Request& request, const KernelRecord& record,
               const CtaGrid& grid, FallbackReason fallback, LaunchPlan& out) {
  const KernelTraits& traits = record.traits;
  out.record = &record;
  out.family = pack.family;
  out.revision = pack.revision;
  out.param_layout = pack.param_layout;
  out.grid = {static_cast<std::uint32_t>(grid.x), static_cast<std::uint32_t>(grid.y),
              static_cast<std::uint32_t>(grid.z)};
  out.block = {traits.threads, 1, 1};
  out.cluster = {static_cast<std::uint32_t>(grid.cluster_x), 1, 1};
  out.smem = traits.smem;
  out.cluster_sched_policy = grid.cluster_x > 1 ? kPolicySpread : kPolicyDefault;
  out.pdl = request.pdl;
  out.num_ctas_q = grid.num_ctas_q;
  out.num_ctas_kv = grid.num_ctas_kv;
  out.num_tokens_per_cta_q = rows_as_tokens(request, traits);
  out.num_heads_per_cta = grid.heads_per_cta;
  out.reshape_factor_kv = reshape_factor_kv(request, traits, pack.param_layout);
  out.min_active_clusters = 0;
  if (traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory) {
    out.min_active_clusters = static_cast<std::int32_t>(ceil_div(grid.total(), grid.cluster_x));
  }
  out.fallback = fallback;
  out.reduction.needed = false;
  if (traits.multi_ctas_kv_mode == MultiCtasKvMode::kSeparateReduction) {
    plan_reduction(request, traits, grid, out.reduction);
  }
  out.lse.needed = false;
  if (request.lse) plan_lse(request, out.lse);
}

}  // namespace cubist::selector
