#include "selector/entry_checks.h"
#include "selector/rules.h"
#include "selector/trtllm_gen_passes.h"

namespace cubist::selector {
namespace {

struct Revision068 {
  static constexpr bool mla_takes_dense_mask = false;
  static constexpr bool page_key_first = false;
  static constexpr bool has_dynamic_page = false;
  static constexpr bool has_wide_v = false;
  static constexpr bool window_skips_sparse = false;

  static bool is_mla(const Request& request) { return has_head_dims(request, 576, 512); }

  static bool sparse_uses_two_ctas(const Request& request) {
    return std::int64_t{request.batch} * (request.heads_per_kv / 64) * 8 > request.num_sms;
  }

  static bool allows_cluster_reduction(bool mla, const KernelTraits& wanted) {
    return !mla || wanted.tile_q < 32;
  }
};

/// The release's reduction kernel counts head CTAs of whole tiles.
bool reduction_has_no_head_cta(const Request& request, const RuleChoice& choice) {
  return choice.record->traits.multi_ctas_kv_mode == MultiCtasKvMode::kSeparateReduction &&
         request.num_q_heads < choice.record->traits.tile_q;
}

}  // namespace

Status check_entry_0_6_8(const Request& request) {
  CUBIST_RETURN_IF_ERROR(check_types(request, false, false));
  const KernelTraits& w = request.wanted;
  if (request.is_decode()) {
    CUBIST_RETURN_IF_ERROR(check_decode_head_dims(request));
    if (request.sparse && !has_head_dims(request, 576, 512) && !has_head_dims(request, 320, 256)) {
      return fail(
          StatusCode::kUnsupported,
          "sparse_mla_topk is {} with head_dim_qk {} and head_dim_vo {}; this release takes a "
          "top-k with 576/512 and 320/256 only",
          request.top_k, w.head_dim_qk, w.head_dim_vo);
    }
  }
  if (request.lse && request.phase != Phase::kRagged) {
    return fail(StatusCode::kUnsupported,
                "lse is true with phase {}; this release returns log-sum-exp for phase ragged only",
                to_string(request.phase));
  }
  if (request.phase == Phase::kContext && !request.causal && request.window != kUnlimited) {
    return fail(
        StatusCode::kInvalidArgument,
        "window_left is {} and causal is false; a paged context call with a window is causal",
        request.window - 1);
  }
  WorkspacePieces pieces;
  if (request.phase != Phase::kContext) pieces.counters = kCounterBytes;
  if (request.phase == Phase::kRagged) {
    pieces.softmax_stats = 8 * request.num_q_heads * request.sum_seq_q;
  }
  return check_workspace(request, pieces);
}

RuleResult choose_0_6_8(const PackTable& table, const Request& request, const RuleOptions& options,
                        RuleTrace* trace) {
  if (request.phase == Phase::kContext && !request.causal) {
    RuleResult refused;
    refused.choice.refusal = RuleRefusal::kContextMask;
    refused.choice.wanted = request.wanted;
    return refused;
  }
  RuleResult result = TrtllmGenPasses<Revision068>(table, request, options, trace).run();
  if (result.choice.refusal == RuleRefusal::kNone &&
      reduction_has_no_head_cta(request, result.choice)) {
    result.choice.refusal = RuleRefusal::kReduction;
  }
  return result;
}

}  // namespace cubist::selector
