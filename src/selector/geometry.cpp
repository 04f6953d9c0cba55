#include "selector/geometry.h"

#include <algorithm>

namespace cubist::selector {

std::int32_t tokens_per_cta(const Request& request, const KernelTraits& traits) {
  if (!traits.groups_tokens_heads_q) return 1;
  return std::max(1, traits.step_q / request.heads_per_kv);
}

std::int32_t heads_per_cta(const Request& request, const KernelTraits& traits) {
  if (!traits.groups_heads_q) return 1;
  return std::min<std::int32_t>(request.heads_per_kv, traits.step_q);
}

GeometryFault base_grid(const Request& request, const KernelTraits& traits, bool two_cta_pairs,
                        CtaGrid& out) {
  std::int32_t tokens = traits.step_q;
  if (traits.kernel_type != KernelType::kContext) tokens = tokens_per_cta(request, traits);
  out.num_ctas_q =
      request.max_q_len == 1 ? 1 : static_cast<std::int32_t>(ceil_div(request.max_q_len, tokens));
  out.heads_per_cta = heads_per_cta(request, traits);
  out.num_head_ctas = request.num_q_heads / out.heads_per_cta;
  if (out.num_head_ctas * out.heads_per_cta != request.num_q_heads) {
    return GeometryFault::kHeadsPerCta;
  }
  out.num_head_dim_ctas = 1;
  if (traits.head_dim_vo != traits.head_dim_per_cta_v) {
    out.num_head_dim_ctas = traits.head_dim_vo / traits.head_dim_per_cta_v;
    if (out.num_head_dim_ctas * traits.head_dim_per_cta_v != traits.head_dim_vo) {
      return GeometryFault::kHeadDimPerCta;
    }
  }
  out.num_ctas_kv = 1;
  out.x = out.num_ctas_q;
  out.y = std::int64_t{out.num_head_ctas} * out.num_head_dim_ctas;
  out.z = request.batch;
  out.cluster_x = 1;
  if (two_cta_pairs) {
    if (out.num_head_ctas != 2 || out.num_head_dim_ctas != 2) return GeometryFault::kTwoCtaShape;
    out.x *= 2;
    out.y = 1;
  }
  return GeometryFault::kNone;
}

std::int64_t visible_kv_len(const Request& request, const KernelTraits& traits) {
  std::int64_t length = request.max_kv_len;
  if (request.sparse) length = std::min<std::int64_t>(length, request.top_k);
  if (traits.mask_type != MaskType::kSlidingOrChunked) return length;
  if (request.window_bites()) {
    return std::min(length, std::int64_t{request.window} + traits.step_kv - 1);
  }
  return std::min<std::int64_t>(length, request.chunk);
}

std::int32_t split_count(const Request& request, const KernelTraits& traits, const CtaGrid& base) {
  const std::int64_t total = base.total();
  if (2 * total > request.num_sms) return 1;
  const std::int64_t pieces = ceil_div(visible_kv_len(request, traits), 2 * traits.step_kv);
  const std::int64_t room = request.num_sms / static_cast<std::int32_t>(total);
  return static_cast<std::int32_t>(std::min(pieces, room));
}

void apply_split(const KernelTraits& traits, std::int32_t num_ctas_kv, CtaGrid& grid) {
  grid.num_ctas_kv = num_ctas_kv;
  grid.x *= num_ctas_kv;
  grid.cluster_x = traits.two_cta_mma ? 2 : 1;
  if (traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory) {
    grid.cluster_x *= num_ctas_kv;
  }
}

}  // namespace cubist::selector
