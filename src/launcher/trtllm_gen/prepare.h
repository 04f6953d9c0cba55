#pragma once

#include "model/attention_problem.h"

namespace cubist::trtllm_gen {

/// The problem as the kernels are told it: derived fields filled in (FP4 KV is HND whatever its
/// kv_layout says, as the published entry points have no other), and the dynamic token-sparse MLA
/// call turned into its token view (every token a page of one, top-k indices in place of a page
/// table, a 128-token sliding window in the second pool).
AttentionProblem prepare_problem(const AttentionProblem& problem);

}  // namespace cubist::trtllm_gen
