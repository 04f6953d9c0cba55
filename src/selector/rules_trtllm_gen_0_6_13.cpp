#include "selector/entry_checks.h"
#include "selector/rules.h"
#include "selector/trtllm_gen_passes.h"

namespace cubist::selector {
namespace {

struct Revision0613 {
  static constexpr bool mla_takes_dense_mask = true;
  static constexpr bool page_key_first = true;
  static constexpr bool has_dynamic_page = true;
  static constexpr bool has_wide_v = true;
  static constexpr bool window_skips_sparse = true;

  static bool is_mla(const Request& request) {
    return has_head_dims(request, 576, 512) || has_head_dims(request, 320, 256) ||
           (has_head_dims(request, 512, 512) && request.sparse);
  }

  static bool sparse_uses_two_ctas(const Request& request) {
    return request.max_q_len > 1 ||
           std::int64_t{request.batch} * (request.heads_per_kv / 64) * 8 > request.num_sms;
  }

  static bool allows_cluster_reduction(bool /*mla*/, const KernelTraits& wanted) {
    return wanted.head_dim_vo < 512;
  }
};

Status check_sparse(const Request& request) {
  const KernelTraits& w = request.wanted;
  if (!has_head_dims(request, 576, 512) && !has_head_dims(request, 320, 256) &&
      !has_head_dims(request, 512, 512)) {
    return fail(StatusCode::kUnsupported,
                "sparse_mla_topk is {} with head_dim_qk {} and head_dim_vo {}; only the MLA shapes "
                "576/512, 320/256 and 512/512 take a top-k",
                request.top_k, w.head_dim_qk, w.head_dim_vo);
  }
  if (w.sparse_type != SparseType::kDynamicTokens) return {};
  const bool types_fit = (w.dtype_q == Dtype::kBf16 || w.dtype_q == Dtype::kE4m3) &&
                         w.dtype_k == w.dtype_q && w.dtype_o == Dtype::kBf16;
  if (!has_head_dims(request, 512, 512) || !types_fit || request.lse || request.skip_softmax) {
    return fail(
        StatusCode::kUnsupported,
        "sparse_dynamic is true with head sizes {}/{}, types {}/{}/{}; it takes 512/512, bf16 "
        "or e4m3 Q and KV, bf16 output, neither lse nor skip_softmax",
        w.head_dim_qk, w.head_dim_vo, to_string(w.dtype_q), to_string(w.dtype_k),
        to_string(w.dtype_o));
  }
  return {};
}

}  // namespace

Status check_entry_0_6_13(const Request& request) {
  CUBIST_RETURN_IF_ERROR(check_types(request, true, true));
  if (request.is_decode()) {
    CUBIST_RETURN_IF_ERROR(check_decode_head_dims(request));
    if (request.sparse) CUBIST_RETURN_IF_ERROR(check_sparse(request));
  }
  if (request.phase == Phase::kContext && !request.causal && request.window != kUnlimited) {
    return fail(
        StatusCode::kInvalidArgument,
        "window_left is {} and causal is false; a paged context call with a window is causal",
        request.window - 1);
  }
  WorkspacePieces pieces;
  if (request.phase != Phase::kContext) pieces.counters = kCounterBytes;
  if (request.lse) {
    // Rounded up and guarded because the statistics are written in tiles of up to 256 tokens.
    const std::int64_t tokens =
        std::int64_t{request.batch} * ceil_div(request.max_q_len, 256) * 256;
    pieces.softmax_stats = 8 * request.num_q_heads * tokens + (std::int64_t{1} << 20);
  }
  return check_workspace(request, pieces);
}

RuleResult choose_0_6_13(const PackTable& table, const Request& request, const RuleOptions& options,
                         RuleTrace* trace) {
  return TrtllmGenPasses<Revision0613>(table, request, options, trace).run();
}

}  // namespace cubist::selector
