#pragma once

#include <array>
#include <cstdint>

namespace cubist::trtllm_gen {

/// Device addresses of one call; 0 = not given. Alignment: 16 bytes for everything a descriptor
/// points at (q, k, v, o, scale tensors) and for the workspace.
struct Addresses {
  std::uint64_t q = 0;
  std::uint64_t k = 0;
  std::uint64_t v = 0;
  std::uint64_t o = 0;
  std::uint64_t o_sf = 0;  ///< nvfp4 output: block scales
  std::uint64_t k_sf = 0;  ///< FP4 KV: block scales
  std::uint64_t v_sf = 0;
  std::uint64_t sliding_pool = 0;  ///< second KV pool (dynamic token-sparse MLA)
  std::uint64_t workspace = 0;
  std::uint64_t block_table = 0;      ///< int32 page table, or token indices for sparse MLA
  std::uint64_t seq_lens_kv = 0;      ///< int32 [batch]
  std::uint64_t cum_seq_lens_q = 0;   ///< int32 [batch + 1]
  std::uint64_t cum_seq_lens_kv = 0;  ///< int32 [batch + 1]
  std::uint64_t sinks = 0;            ///< float [num_q_heads]
  std::uint64_t lse = 0;              ///< float, strides from the problem
  std::uint64_t topk_lens = 0;        ///< int32 per token
  std::uint64_t bmm1_scale = 0;       ///< one float, already times log2(e)
  std::uint64_t bmm2_scale = 0;       ///< one float
  std::array<std::uint64_t, 4> sage_scales{};  ///< q, k, p, v
};

}  // namespace cubist::trtllm_gen
