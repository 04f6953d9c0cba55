#pragma once

#include <cstddef>
#include <cstdint>

/// A CUtensorMap, as the driver encodes it.
struct alignas(64) CubistTensorMap {
  unsigned char bytes[128];
};

/// What a static kernel may write as O.
enum CubistDecodeOutput : std::int32_t {
  kCubistDecodeOutputBf16 = 0,
  kCubistDecodeOutputFp16 = 1,
  kCubistDecodeOutputE4m3 = 2,
  kCubistDecodeOutputNvfp4 = 3,
};

/// Tiles of 64 keys that are worth a CTA of their own: 256 keys, the least the selection counts
/// with; and, batch-invariant, 1,024 keys, which is what a sequence's share of CTAs comes from
/// then.
inline constexpr std::int32_t kCubistDecodeMinTilesPerCta = 4;
inline constexpr std::int32_t kCubistDecodeInvariantTilesPerCta = 16;

/// What static kernels alone read; it lies where persistent ones have a tensor map.
struct CubistStaticDecodeParams {
  void* o_sf;        // nvfp4 output: block scales, launcher/nvfp4_output.h
  float o_sf_scale;  // nvfp4 output: global scale
  std::int32_t o_sf_start_index;
  std::int32_t dtype_o;            // CubistDecodeOutput
  std::int32_t min_tiles_per_cta;  // a sequence gets no more CTAs than one for so many tiles
};

/// The parameter block of the cubist_decode kernels (layout "cubist-decode-1"), passed by value.
/// Compiled by nvcc for the kernels and by the host compiler for the launcher: plain C types only.
/// Strides in elements, lengths in tokens.
struct CubistDecodeParams {
  const void* q;  // [sum_seq_q, num_q_heads, head_dim]
  const void* k;  // paged, strides below; HND and NHD differ in strides alone
  const void* v;
  void* o;                             // [sum_seq_q, num_q_heads, head_dim], strides in elements
  const float* sinks;                  // [num_q_heads], natural-log units, or null
  float* lse;                          // [sum_seq_q, num_q_heads], base 2, or null
  const std::int32_t* block_table;     // [batch, max_pages_per_seq] page numbers
  const std::int32_t* seq_lens_kv;     // [batch] KV tokens, the new ones included; may be 0
  const std::int32_t* cum_seq_lens_q;  // [batch + 1], or null: every sequence has max_q_len tokens
  float* partial_o;                    // num_ctas_kv > 1: see kernels/decode/README.md
  float* partial_stats;
  std::int32_t* counters;        // zero before the first launch; every launch leaves them zero
  const float* bmm1_scale_log2;  // device scalar, already times log2(e); null: the value below
  const float* bmm2_scale;       // device scalar; null: the value below
  std::int64_t q_stride_tokens;
  std::int64_t q_stride_heads;
  std::int64_t k_stride_pages;
  std::int64_t k_stride_heads;
  std::int64_t k_stride_tokens;
  std::int64_t v_stride_pages;
  std::int64_t v_stride_heads;
  std::int64_t v_stride_tokens;
  std::int64_t o_stride_tokens;
  std::int64_t o_stride_heads;
  float scale_softmax_log2;  // q * k * sm scale, times log2(e)
  float output_scale;        // v * o scale
  std::int32_t batch;
  std::int32_t max_q_len;
  std::int32_t num_q_heads;
  std::int32_t num_kv_heads;
  std::int32_t num_heads_per_kv;
  std::int32_t page_size_log2;
  std::int32_t max_pages_per_seq;
  std::int32_t window_left;  // tokens left of the query's own; -1 none
  std::int32_t num_ctas_q;   // CTAs over query tokens
  std::int32_t num_ctas_kv;  // CTAs one KV sequence is split over
  std::int32_t num_tokens_per_cta_q;
  std::int32_t num_heads_per_cta;  // min(num_heads_per_kv, tile_q)
  std::int32_t prefetch_kv;        // persistent kernels: 1 = all but the new tokens' KV may be read
                                   // before the preceding kernel of the stream has ended
  std::int32_t reserved;
  union {
    CubistTensorMap k_map;  // persistent kernels alone: see kernels/decode/README.md
    CubistStaticDecodeParams fixed;
  };
  union {
    CubistTensorMap v_map;
    CubistTensorMap q_map;  // MLA, whose values are keys
  };
};

static_assert(sizeof(CubistDecodeParams) == 512, "the manifest's parameter layout says 512 bytes");
static_assert(offsetof(CubistDecodeParams, q_stride_tokens) == 112, "pointers come first");
static_assert(offsetof(CubistDecodeParams, scale_softmax_log2) == 192, "scalars come last");
static_assert(sizeof(CubistStaticDecodeParams) <= sizeof(CubistTensorMap), "it lies in its place");
static_assert(offsetof(CubistDecodeParams, k_map) == 256, "descriptors are aligned to 64 bytes");
