#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "launcher/output_layout.h"
#include "model/attention_problem.h"

namespace cubist::launcher {

/// The five scales of an attention call as host numbers. 0 for sm_scale means "left out": see
/// default_sm_scale. Everything else must be finite and not 0.
///   bmm1 = q_scale * k_scale * sm_scale     bmm2 = v_scale * o_scale
/// in float32, in that order.
struct HostScales {
  float q_scale = 1.0F;
  float k_scale = 1.0F;  ///< for a quantised KV cache alone
  float v_scale = 1.0F;  ///< for a quantised KV cache alone
  float sm_scale = 0.0F;
  float o_scale = 1.0F;
};

/// What one launch works on: device addresses (0 = not given), valid until the launch has run.
/// Shapes and strides are those of the AttentionProblem that was selected for, but for those named
/// here. Alignment: 16 bytes for q, k, v, o and block scales (32 where FP4 KV is copied unpacked);
/// 256 for the workspace; 4 for all others.
///
/// An address is given exactly where the problem has the thing: see each. The family cubist_decode
/// has none of what is marked (*); what a family does not have must be left out.
struct CallArgs {
  std::uint64_t q = 0;
  std::uint64_t k = 0;
  std::uint64_t v = 0;  ///< is_mla: 0 or k, which holds both
  std::uint64_t o = 0;
  /// int32 [batch, max_pages_per_seq], or [batch, 2, max_pages_per_seq] (K's pages, then V's) where
  /// the problem says uses_shared_paged_kv_idx = false (*). A top-k call: int32 [sum_seq_q,
  /// sparse_mla_topk] token indices (*). Not for ragged calls.
  std::uint64_t block_table = 0;
  std::uint64_t seq_lens_kv = 0;  ///< int32 [batch]
  /// int32 [batch + 1]: context and ragged calls, and decode where the problem says varlen_q.
  std::uint64_t cum_seq_lens_q = 0;
  std::uint64_t cum_seq_lens_kv = 0;  ///< int32 [batch + 1]: context and ragged calls (*)
  std::uint64_t sinks = 0;            ///< float [num_q_heads]; where the problem says sinks
  std::uint64_t lse = 0;              ///< float, base 2; where the problem says lse

  std::uint64_t k_sf = 0;  ///< FP4 KV: e4m3 [num_pages, num_kv_heads, page_size, head_dim / 16] (*)
  std::uint64_t v_sf = 0;
  std::uint64_t o_sf = 0;          ///< nvfp4 output: block scales, launcher/nvfp4_output.h
  std::uint64_t sliding_pool = 0;  ///< sparse_dynamic: the second KV pool (*)
  std::uint64_t topk_lens = 0;     ///< sparse_dynamic: int32 [sum_seq_q] (*)
  std::array<std::uint64_t, 4> sage_scales{};  ///< q, k, p, v; where sage_blocks is not 0 (*)

  std::int64_t o_stride_tokens = -1;  ///< elements; -1 = dense
  std::int64_t o_stride_heads = -1;
  /// What the caller knows of the tensor behind `o`; checked if it is given. Its strides stand for
  /// the two above.
  std::optional<TensorLayout> o_layout;
  /// nvfp4 output: the global scale, and the first row in the scale tensor; left out: the
  /// problem's.
  std::optional<float> o_sf_scale;
  std::optional<std::int32_t> o_sf_start_index;

  std::uint64_t workspace = 0;
  std::uint64_t workspace_size = 0;  ///< bytes

  HostScales scales;
  /// Device scalars in place of the host's: bmm1 already times log2(e), and bmm2. One float each.
  std::uint64_t bmm1_scale_log2 = 0;
  std::uint64_t bmm2_scale = 0;
};

/// MLA's V is K, and may be left out.
inline std::uint64_t value_address(const CallArgs& args) { return args.v == 0 ? args.k : args.v; }

/// The output's strides, the dense ones filled in. Unit: elements. A layout must have been checked
/// (check_output_layout).
struct OutputStrides {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
};
inline OutputStrides output_strides(const AttentionProblem& problem, const CallArgs& args) {
  if (args.o_layout) return {token_stride(*args.o_layout), head_stride(*args.o_layout)};
  const std::int64_t dense_tokens = std::int64_t{problem.num_q_heads} * problem.head_dim_vo;
  return {args.o_stride_tokens == -1 ? dense_tokens : args.o_stride_tokens,
          args.o_stride_heads == -1 ? problem.head_dim_vo : args.o_stride_heads};
}

}  // namespace cubist::launcher
