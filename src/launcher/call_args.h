#pragma once

#include <cstdint>

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
/// here. Alignment: 16 bytes for q, k, v, o; 256 for the workspace; 4 for all others.
struct CallArgs {
  std::uint64_t q = 0;
  std::uint64_t k = 0;
  std::uint64_t v = 0;
  std::uint64_t o = 0;
  std::uint64_t block_table = 0;     ///< int32 [batch, max_pages_per_seq]
  std::uint64_t seq_lens_kv = 0;     ///< int32 [batch]
  std::uint64_t cum_seq_lens_q = 0;  ///< int32 [batch + 1]; exactly where the problem says varlen_q
  std::uint64_t sinks = 0;           ///< float [num_q_heads]; exactly where the problem says sinks
  std::uint64_t lse = 0;             ///< float, base 2; exactly where the problem says lse
  std::int64_t o_stride_tokens = -1;  ///< elements; -1 = dense
  std::int64_t o_stride_heads = -1;

  std::uint64_t workspace = 0;
  std::uint64_t workspace_size = 0;  ///< bytes

  HostScales scales;
  /// Device scalars in place of the host's: bmm1 already times log2(e), and bmm2. One float each.
  std::uint64_t bmm1_scale_log2 = 0;
  std::uint64_t bmm2_scale = 0;
};

/// The output's strides, the dense ones filled in. Unit: elements.
struct OutputStrides {
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
};
inline OutputStrides output_strides(const AttentionProblem& problem, const CallArgs& args) {
  const std::int64_t dense_tokens = std::int64_t{problem.num_q_heads} * problem.head_dim_vo;
  return {args.o_stride_tokens == -1 ? dense_tokens : args.o_stride_tokens,
          args.o_stride_heads == -1 ? problem.head_dim_vo : args.o_stride_heads};
}

}  // namespace cubist::launcher
