#include "model/launch_limits.h"
#include "selector/request.h"
#include "selector/select.h"

namespace cubist::selector {

std::string_view to_string(RuleRefusal refusal) {
  switch (refusal) {
    case RuleRefusal::kNone:
      return "none";
    case RuleRefusal::kNoKernel:
      return "the rules ask for a kernel that the pack does not have";
    case RuleRefusal::kTileNotBuildable:
      return "the rules ask for a tile_q that is no power of two";
    case RuleRefusal::kHeadsPerCta:
      return "the heads of a CTA do not divide num_q_heads";
    case RuleRefusal::kHeadDimPerCta:
      return "the columns of a CTA do not divide head_dim_vo";
    case RuleRefusal::kTwoCtaShape:
      return "2-CTA MMA needs two head CTAs and two column CTAs (128 heads on one KV head)";
    case RuleRefusal::kWindowedMla:
      return "the rules refuse MLA whose KV is longer than the window or chunked";
    case RuleRefusal::kNotConverged:
      return "the rules do not come to rest in four passes";
    case RuleRefusal::kContextMask:
      return "this revision's paged context calls are always causal";
    case RuleRefusal::kReduction:
      return "this revision's separate reduction cannot run fewer heads than tile_q";
    case RuleRefusal::kSplitsHeadGroups:
      return "the rules would put heads of two KV groups into one CTA";
    case RuleRefusal::kNotServed:
      return "the rules' choice would not launch here, or give wrong results";
    case RuleRefusal::kGridLimits:
      return "the CTAs of a launch are more than a grid can hold";
  }
  return "unknown";
}

std::string describe_wanted(const KernelTraits& w) {
  return fmt::format(
      "dtype_q {}, dtype_k {}, dtype_v {}, dtype_o {}, qkv_layout {}, kernel_type {}, mask_type "
      "{}, "
      "head_dim_qk {}, head_dim_vo {}, head_dim_per_cta_v {}, page_size {}{}, tile_q {}, tile_kv "
      "{}, "
      "scheduler {}, multi_ctas_kv_mode {}, sparse_type {}, two_cta_mma {}, skip_softmax {}",
      to_string(w.dtype_q), to_string(w.dtype_k), to_string(w.dtype_v), to_string(w.dtype_o),
      to_string(w.qkv_layout), to_string(w.kernel_type), to_string(w.mask_type), w.head_dim_qk,
      w.head_dim_vo, w.head_dim_per_cta_v, w.page_size, w.dynamic_page ? " and up (run-time)" : "",
      w.tile_q, w.tile_kv, to_string(w.scheduler), to_string(w.multi_ctas_kv_mode),
      to_string(w.sparse_type), w.two_cta_mma, w.skip_softmax);
}

namespace {

/// What a kernel of the cubist_decode family must have: all else is the rules' to choose.
std::string describe_decode_request(const Request& r) {
  const KernelTraits& w = r.wanted;
  return fmt::format(
      "dtype_q {}, dtype_k {}, dtype_v {}, dtype_o {}, head_dim_qk {}, head_dim_vo {}, page_size "
      "{}, is_mla {}, causal {}, batch_invariant {}, sm {}",
      to_string(w.dtype_q), to_string(w.dtype_k), to_string(w.dtype_v), to_string(w.dtype_o),
      w.head_dim_qk, w.head_dim_vo, r.page_size, r.is_mla, r.causal, r.batch_invariant, r.sm);
}

Error grid_error(const PackTable& pack, const Request& request, const PackAnswer& answer) {
  return Error(StatusCode::kUnsupported,
               fmt::format("no kernel: max_q_len is {} on {} query heads, {} KV heads; the grid "
                           "would have {} CTAs in x, and none holds more than {} ({}): ask for "
                           "fewer query tokens at once",
                           request.max_q_len, request.num_q_heads, request.num_kv_heads,
                           answer.grid_x, kMaxGridX, pack.pack().name));
}

}  // namespace

Error refusal_error(const PackTable& pack, const Request& request, const PackAnswer& answer,
                    bool strict) {
  if (answer.refusal == RuleRefusal::kGridLimits) return grid_error(pack, request, answer);
  const bool decode = pack.pack().family == KernelFamily::kCubistDecode;
  // Without --strict the same would be asked for: these rules look at every kernel there is.
  const char* next = strict && !decode
                         ? "without --strict a kernel that serves would be taken, if there is one"
                         : "no other kernel of the pack serves either; 'cubist select --explain' "
                           "names the nearest ones";
  // A command has the nearest kernels to put behind the first line; the long list comes last.
  const std::string wanted = decode ? "a kernel must have: " + describe_decode_request(request)
                                    : "the rules last asked for: " + describe_wanted(answer.wanted);
  return Error(StatusCode::kUnsupported,
               fmt::format("no kernel: {} ({}); {}\n  {}", to_string(answer.refusal),
                           pack.pack().name, next, wanted));
}

}  // namespace cubist::selector
