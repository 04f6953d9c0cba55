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

Error refusal_error(const PackTable& pack, const PackAnswer& answer, bool strict) {
  const char* next = strict
                         ? "without --strict a kernel that serves would be taken, if there is one"
                         : "no other kernel of the pack serves either; 'cubist select --explain' "
                           "names the nearest ones";
  // A command has the nearest kernels to put behind the first line; the long list comes last.
  return Error(StatusCode::kUnsupported,
               fmt::format("no kernel: {} ({}); {}\n  the rules last asked for: {}",
                           to_string(answer.refusal), pack.pack().name, next,
                           describe_wanted(answer.wanted)));
}

}  // namespace cubist::selector
