#include "model/derived_problem.h"

#include <algorithm>
#include <cstdint>
#include <limits>

namespace cubist {
namespace {

std::int64_t saturating_product(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<std::int64_t>::max()
                                                : product;
}

std::int32_t ceil_div(std::int32_t a, std::int32_t b) { return b <= 0 ? 0 : (a - 1) / b + 1; }

template <class Field>
void fill(Field& field, std::int64_t value) {
  if (field >= 0) return;
  field = static_cast<Field>(std::min<std::int64_t>(value, std::numeric_limits<Field>::max()));
}

void fill_paged_strides(AttentionProblem& p) {
  const std::int64_t head_dim = std::max(p.head_dim_qk, p.head_dim_vo);
  const bool hnd = p.kv_layout == KvLayout::kHnd;
  const std::int64_t tokens_times_dim = saturating_product(p.page_size, head_dim);
  fill(p.kv_stride_tokens, hnd ? head_dim : saturating_product(p.num_kv_heads, head_dim));
  fill(p.kv_stride_heads, hnd ? tokens_times_dim : head_dim);
  const std::int64_t page = saturating_product(p.num_kv_heads, tokens_times_dim);
  // Two halves of one tensor: K and V of a page follow each other. One-copy KV has but one half.
  fill(p.kv_stride_batch, p.kv_combined && !p.is_mla ? saturating_product(2, page) : page);
}

}  // namespace

AttentionProblem with_derived_fields(const AttentionProblem& problem) {
  AttentionProblem p = problem;
  fill(p.head_dim_vo, p.head_dim_qk);
  fill(p.sum_seq_q, saturating_product(p.batch, p.max_q_len));
  fill(p.sum_seq_kv, saturating_product(p.batch, p.max_kv_len));
  fill(p.max_pages_per_seq, ceil_div(p.max_kv_len, p.page_size));
  fill(p.num_pages, saturating_product(p.batch, p.max_pages_per_seq));
  fill(p.q_stride_heads, p.head_dim_qk);
  fill(p.q_stride_tokens, saturating_product(p.num_q_heads, p.head_dim_qk));
  if (p.phase == Phase::kRagged) {
    fill(p.k_stride_heads, p.head_dim_qk);
    fill(p.k_stride_tokens, saturating_product(p.num_kv_heads, p.head_dim_qk));
    fill(p.v_stride_heads, p.head_dim_vo);
    fill(p.v_stride_tokens, saturating_product(p.num_kv_heads, p.head_dim_vo));
  } else {
    fill_paged_strides(p);
  }
  fill(p.lse_stride_tokens, p.num_q_heads);
  fill(p.lse_stride_heads, 1);
  return p;
}

}  // namespace cubist
