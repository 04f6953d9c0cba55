#pragma once

#include <cstddef>
#include <cstdint>

/// Parameter blocks of the cubist_aux kernels, passed by value. Compiled by nvcc for the kernels
/// and by the host compiler for the launcher: plain C types only. Strides in elements, lengths in
/// tokens.

/// Layout "cubist-reduce-1": joins the partial results of a main kernel whose KV sequences were
/// spread over CTAs (multi_ctas_kv_mode gmem_separate). A tile is the rows of one main CTA:
///
///   tile           (b * gridDim.y + head CTA * num_head_dim_ctas + column CTA) * num_ctas_q + q
///   CTA partial_stats  float2 [tiles][num_ctas_kv][tile_q]          maximum raw score, sum
///   partial_o      16 bit [tiles][num_ctas_kv][tile_q][head_dim_per_cta]
///
/// Row r of a tile is token r / num_heads_per_cta, head r % num_heads_per_cta of the CTA.
struct CubistReduceParams {
  const void* partial_o;               // 16-byte aligned
  const float* partial_stats;          // 8-byte aligned
  void* o;                             // [sum_seq_q, num_q_heads, head_dim_vo], 16-byte aligned
  float* softmax_stats;                // float2 [sum_seq_q, num_q_heads], or null
  const float* sinks;                  // [num_q_heads], natural-log units, unscaled, or null
  const std::int32_t* seq_lens_kv;     // [batch] KV tokens, the new ones included; may be 0
  const std::int32_t* cum_seq_lens_q;  // [batch + 1], or null: every sequence has max_q_len tokens
  const std::int32_t* topk_lens;       // [sum_seq_q] selected keys of each token, or null
  const float* bmm1_scale_log2;  // device scalar, already times log2(e); null: the value below
  float scale_softmax_log2;      // q * k * sm scale, times log2(e)
  float sum_scale;               // what the sums of the statistics are multiplied with
  std::int32_t max_q_len;
  std::int32_t num_q_heads;
  std::int32_t head_dim_vo;
  std::int32_t head_dim_per_cta;  // 64, 128, 256 or 512
  std::int32_t tile_q;            // 64 or 128
  std::int32_t num_heads_per_cta;
  std::int32_t num_tokens_per_cta_q;
  std::int32_t num_ctas_q;
  std::int32_t num_ctas_kv;
  std::int32_t num_head_dim_ctas;
  std::int32_t ctas_per_tile;  // CTAs of this kernel that share one tile's rows
  std::int32_t sparse_topk;    // at most so many keys a token; 0 = no limit
};

/// Layout "cubist-lse-1": softmax statistics to log-sum-exp, base 2.
struct CubistLseParams {
  const float* softmax_stats;  // float2 [tokens, num_q_heads]: scaled maximum, sum
  float* lse;
  std::int64_t stride_tokens;
  std::int64_t stride_heads;
  std::int64_t num_entries;  // tokens * num_q_heads
  std::int32_t num_q_heads;
  std::int32_t reserved;
};

/// Layout "cubist-fuse-scales-1": each scale is the float at its address, or its value where the
/// address is null. src/launcher/scales.h says what they mean.
struct CubistFuseScalesParams {
  const float* q;
  const float* k;
  const float* sm;
  const float* v;
  const float* o;
  float* bmm1_scale_log2;  // q * k * sm * log2(e)
  float* bmm2_scale;       // v * o
  float q_value;
  float k_value;
  float sm_value;
  float v_value;
  float o_value;
  std::int32_t reserved;
};

static_assert(sizeof(CubistReduceParams) == 128, "the manifest's parameter layout says 128 bytes");
static_assert(offsetof(CubistReduceParams, scale_softmax_log2) == 72, "pointers come first");
static_assert(sizeof(CubistLseParams) == 48, "the manifest's parameter layout says 48 bytes");
static_assert(sizeof(CubistFuseScalesParams) == 80,
              "the manifest's parameter layout says 80 bytes");
