#include "launcher/trtllm_gen/prepare.h"

#include "model/derived_problem.h"

namespace cubist::trtllm_gen {

AttentionProblem prepare_problem(const AttentionProblem& problem) {
  AttentionProblem p = problem;
  if (p.dtype_k == Dtype::kE2m1) p.kv_layout = KvLayout::kHnd;
  p = with_derived_fields(p);
  if (p.phase != Phase::kDecode)
    p.sparse_mla_topk = 0;  // the other entry points have no such argument
  // The index table of a token-sparse call has one entry per selected token.
  if (p.sparse_mla_topk > 0) p.max_pages_per_seq = p.sparse_mla_topk;
  if (!p.sparse_dynamic) return p;
  p.max_kv_len = p.sparse_mla_topk;
  p.num_pages *= p.page_size;
  p.page_size = 1;
  p.kv_stride_batch = p.kv_stride_tokens;
  p.window_left = 127;
  p.uses_shared_paged_kv_idx = true;
  p.lse = false;
  p.skip_softmax.reset();
  return p;
}

}  // namespace cubist::trtllm_gen
