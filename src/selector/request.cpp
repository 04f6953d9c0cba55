#include "selector/request.h"

#include "selector/validate.h"

namespace cubist::selector {
namespace {

void fill_wanted(const AttentionProblem& p, KernelTraits& wanted) {
  wanted.dtype_q = p.dtype_q;
  wanted.dtype_k = p.dtype_k;
  wanted.dtype_v = p.dtype_v;
  wanted.dtype_o = p.dtype_o;
  wanted.sage_block_q = static_cast<std::uint8_t>(p.sage_blocks[0]);
  wanted.sage_block_k = static_cast<std::uint8_t>(p.sage_blocks[1]);
  wanted.sage_block_p = static_cast<std::uint8_t>(p.sage_blocks[2]);
  wanted.sage_block_v = static_cast<std::uint8_t>(p.sage_blocks[3]);
  wanted.head_dim_qk = static_cast<std::uint16_t>(p.head_dim_qk);
  wanted.head_dim_vo =
      static_cast<std::uint16_t>(p.head_dim_vo == -1 ? p.head_dim_qk : p.head_dim_vo);
  wanted.qkv_layout = p.phase == Phase::kRagged ? QkvLayout::kSeparate : QkvLayout::kPagedKv;
  wanted.skip_softmax = p.skip_softmax.value_or(0.0F) != 0.0F;
  wanted.sparse_type = SparseType::kNone;
  // A top-k given to a context call is not looked at: those calls have no sparse form.
  if (p.phase == Phase::kDecode && p.sparse_mla_topk > 0) {
    wanted.sparse_type = p.sparse_dynamic ? SparseType::kDynamicTokens : SparseType::kStaticTokens;
  }
}

/// Elements from one key to the next in a page. FP4 caches are HND whatever kv_layout says.
std::int64_t kv_token_stride(const AttentionProblem& p) {
  if (p.kv_stride_tokens != -1) return p.kv_stride_tokens;
  const bool hnd = p.kv_layout == KvLayout::kHnd || p.dtype_k == Dtype::kE2m1;
  return hnd ? std::int64_t{p.head_dim_qk} : std::int64_t{p.head_dim_qk} * p.num_kv_heads;
}

}  // namespace

Status prepare_request(const AttentionProblem& p, const DeviceProfile& device, Request& out) {
  CUBIST_RETURN_IF_ERROR(validate_problem(p));
  CUBIST_RETURN_IF_ERROR(validate_device(device));
  fill_wanted(p, out.wanted);
  out.phase = p.phase;
  out.sparse = out.wanted.sparse_type != SparseType::kNone;
  out.is_mla = p.is_mla;
  out.causal = p.causal;
  out.lse = p.lse;
  out.pdl = p.enable_pdl;
  out.skip_softmax = out.wanted.skip_softmax;
  out.varlen_q = p.varlen_q;
  out.batch_invariant = p.batch_invariant;
  out.num_q_heads = p.num_q_heads;
  out.num_kv_heads = p.num_kv_heads;
  out.heads_per_kv = p.num_q_heads / p.num_kv_heads;
  out.batch = p.batch;
  out.max_q_len = p.max_q_len;
  out.top_k = out.sparse ? p.sparse_mla_topk : 0;
  // With per-token top-k lengths every token sees its own list: the KV cache's length is not asked.
  out.max_kv_len =
      out.wanted.sparse_type == SparseType::kDynamicTokens ? p.sparse_mla_topk : p.max_kv_len;
  out.sum_seq_q = p.sum_seq_q != -1 ? p.sum_seq_q : std::int64_t{p.batch} * p.max_q_len;
  out.window = p.window_left == -1 ? kUnlimited : p.window_left + 1;
  out.chunk = p.chunk_size == 0 ? kUnlimited : p.chunk_size;
  out.page_size = p.phase == Phase::kRagged ? 0 : p.page_size;
  out.q_stride_tokens =
      p.q_stride_tokens > 0 ? p.q_stride_tokens : std::int64_t{p.num_q_heads} * p.head_dim_qk;
  out.kv_stride_tokens = kv_token_stride(p);
  out.workspace_size = p.workspace_size;
  out.sm = device.sm;
  out.num_sms = device.num_sms;
  out.max_smem = device.max_smem_optin;
  out.max_active_clusters = p.max_active_clusters;
  return {};
}

}  // namespace cubist::selector
