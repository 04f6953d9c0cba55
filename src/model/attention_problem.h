#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "model/dtype.h"
#include "model/enums.h"

namespace cubist {

/// A scale that is known on the host or read by the kernel from device memory.
struct ScaleArgument {
  double value = 1.0;
  bool on_device = false;

  bool operator==(const ScaleArgument&) const = default;
};

/// One attention call, as the caller knows it. -1 in a field with "derived" means: work it out.
///
/// q          [sum_seq_q, num_q_heads, head_dim_qk]
/// paged kv   [num_pages, num_kv_heads, page_size, head_dim] (HND) or heads and tokens swapped
/// (NHD) out        [sum_seq_q, num_q_heads, head_dim_vo] Lengths in tokens, strides in elements.
struct AttentionProblem {
  Phase phase = Phase::kDecode;
  Dtype dtype_q = Dtype::kBf16;
  Dtype dtype_k = Dtype::kBf16;
  Dtype dtype_v = Dtype::kBf16;
  Dtype dtype_o = Dtype::kBf16;
  std::int32_t head_dim_qk = 128;
  std::int32_t head_dim_vo = -1;  ///< derived: head_dim_qk
  std::int32_t num_q_heads = 0;
  std::int32_t num_kv_heads = 8;
  std::int32_t batch = 1;
  std::int32_t max_q_len = 1;
  std::int32_t max_kv_len = 1024;
  std::int64_t sum_seq_q = -1;   ///< derived: batch * max_q_len
  std::int64_t sum_seq_kv = -1;  ///< derived: batch * max_kv_len
  std::int32_t page_size = 64;
  std::int32_t max_pages_per_seq = -1;  ///< derived: ceil(max_kv_len / page_size)
  std::int64_t num_pages = -1;          ///< derived: batch * max_pages_per_seq
  KvLayout kv_layout = KvLayout::kHnd;
  bool kv_combined = false;           ///< K and V are the two halves of one tensor
  bool is_mla = false;                ///< one-copy KV: the V tensor is the K tensor
  std::int64_t q_stride_tokens = -1;  ///< derived: dense
  std::int64_t q_stride_heads = -1;
  std::int64_t kv_stride_batch = -1;
  std::int64_t kv_stride_heads = -1;
  std::int64_t kv_stride_tokens = -1;
  std::int64_t k_stride_tokens = -1;  ///< ragged
  std::int64_t k_stride_heads = -1;
  std::int64_t v_stride_tokens = -1;
  std::int64_t v_stride_heads = -1;
  std::int32_t window_left = -1;  ///< tokens to the left of the query's own; -1 = no window
  std::int32_t chunk_size = 0;    ///< chunked attention, tokens; 0 = off
  bool causal = true;
  bool custom_mask = false;  ///< refused by name: no published kernel is asked for it
  bool packed_qkv = false;   ///< refused by name
  bool varlen_q = false;     ///< decode: cumulative Q lengths are given
  bool sinks = false;
  bool lse = false;
  std::int64_t lse_stride_tokens = -1;
  std::int64_t lse_stride_heads = -1;
  std::int32_t sparse_mla_topk = 0;
  bool sparse_dynamic = false;  ///< per-token top-k lengths are given
  bool uses_shared_paged_kv_idx = true;
  float o_sf_scale = -1.0F;  ///< nvfp4 output: global scale; -1 = unused
  std::int32_t o_sf_start_index = 0;
  ScaleArgument bmm1_scale;
  ScaleArgument bmm2_scale;
  std::optional<float> skip_softmax;  ///< threshold scale factor
  bool enable_pdl = true;
  /// A sequence's bits depend on nothing of the batch around it, nor on how many SMs there are.
  bool batch_invariant = false;
  std::int64_t workspace_size = 268435456;                 ///< bytes
  std::array<std::int32_t, 4> sage_blocks = {0, 0, 0, 0};  ///< q, k, p, v; 0 = off
  /// The cluster-occupancy answer to use for this problem; -1 = ask the device profile or the
  /// driver.
  std::int32_t max_active_clusters = -1;

  bool operator==(const AttentionProblem&) const = default;
};

}  // namespace cubist
