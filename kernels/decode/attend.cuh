#pragma once

#include <cstdint>

#include "convert.cuh"
#include "ptx.cuh"
#include "query.cuh"
#include "swizzle.cuh"
#include "variant.h"
#include "work.cuh"

/// One warp's attention of 16 rows over its share of a tile's keys: scores, online softmax, values.
///
/// Fragments are those of mma.m16n8k16: with g = lane / 4 and t = lane % 4 a thread holds rows g
/// and g + 8 and, of each block of eight columns, columns 2t and 2t + 1.
namespace cubist_decode {

template <class V>
__device__ __forceinline__ void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1) {
  if constexpr (V::kMma == Type::kBf16) {
    mma_bf16(c, a, b0, b1);
  } else {
    mma_fp16(c, a, b0, b1);
  }
}

/// Running softmax of a warp's 16 rows; this thread's part.
template <class V>
struct RowSums {
  /// Sums of probability * V. Columns of block i: of 16-bit V 8i + 2t and 8i + 2t + 1. Of e4m3 V
  /// two neighbouring blocks share 16 columns, the first the even ones and the second the odd ones:
  /// 16 (i / 2) + 4t + i % 2 and the same + 2.
  float values[V::kHeadDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};  ///< of rows g and g + 8, scaled, in powers of two
  float sum[2] = {0.0F, 0.0F};                ///< of 2^(score - maximum) over this thread's columns
};

/// What masks a row's scores and scales them, for rows g and g + 8.
struct RowLimits {
  int first_key[2];
  int end_key[2];
  float scale[2];
};

/// scores[8 keys a block] = rows of Q times keys from `key` of the tile at `k`.
template <class V, class QueryFragment>
__device__ __forceinline__ void multiply_keys(float (&scores)[V::kKeysPerWarp / 8][4],
                                              QueryFragment&& query, std::uint32_t k, int key) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (V::kConvertsKv) {
    // A register holds four neighbouring elements of one key; four chunks of 16 make four steps.
#pragma unroll
    for (int group = 0; group < V::kHeadDim / 64; ++group) {
      std::uint32_t a[4][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) query(a[i], group * 4 + i);
#pragma unroll
      for (int block = 0; block < V::kKeysPerWarp / 8; ++block) {
        std::uint32_t raw[4];
        load_matrices(
            raw, k + swizzled<V::kKvRowBytes>(key + block * 8 + lane % 8, group * 4 + lane / 8));
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          mma<V>(scores[block], a[i], e4m3_pair_to_fp16(raw[i]), e4m3_high_pair_to_fp16(raw[i]));
        }
      }
    }
  } else {
#pragma unroll
    for (int step = 0; step < V::kHeadDim / 16; ++step) {
      std::uint32_t a[4];
      query(a, step);
#pragma unroll
      for (int block = 0; block < V::kKeysPerWarp / 8; block += 2) {
        std::uint32_t b[4];
        const int row = key + block * 8 + lane / 16 * 8 + lane % 8;
        load_matrices(b, k + swizzled<V::kKvRowBytes>(row, 2 * step + lane / 8 % 2));
        mma<V>(scores[block], a, b[0], b[1]);
        mma<V>(scores[block + 1], a, b[2], b[3]);
      }
    }
  }
}

/// -inf where a row does not see the key of its score; `key` is that of the first column.
template <int kBlocks>
__device__ __forceinline__ void mask_scores(float (&scores)[kBlocks][4], const RowLimits& limits,
                                            int key) {
  const int column = key + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int here = column + block * 8 + i % 2;
      if (here < limits.first_key[i / 2] || here >= limits.end_key[i / 2]) {
        scores[block][i] = -INFINITY;
      }
    }
  }
}

__device__ __forceinline__ float max_of_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

/// Turns scaled scores into probabilities relative to the rows' new maxima and rescales the sums so
/// far. Rows that have seen no key keep the maximum -inf and sums of zero.
template <class V>
__device__ __forceinline__ void update_softmax(float (&scores)[V::kKeysPerWarp / 8][4],
                                               RowSums<V>& sums) {
  constexpr int kBlocks = V::kKeysPerWarp / 8;
  float reference[2];
  float rescale[2];
  bool raised = false;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = fmaxf(scores[0][2 * r], scores[0][2 * r + 1]);
#pragma unroll
    for (int block = 1; block < kBlocks; ++block) {
      maximum = fmaxf(maximum, fmaxf(scores[block][2 * r], scores[block][2 * r + 1]));
    }
    maximum = fmaxf(sums.maximum[r], max_of_quad(maximum));
    reference[r] = maximum == -INFINITY ? 0.0F : maximum;
    rescale[r] = exp2_approx(sums.maximum[r] - reference[r]);
    raised |= maximum != sums.maximum[r];
    sums.maximum[r] = maximum;
  }
  if (__any_sync(0xffffffffU, raised)) {
#pragma unroll
    for (int i = 0; i < V::kHeadDim / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums.values[i][j] *= rescale[j / 2];
    }
    sums.sum[0] *= rescale[0];
    sums.sum[1] *= rescale[1];
  }
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[block][i] = exp2_approx(scores[block][i] - reference[i / 2]);
      sums.sum[i / 2] += scores[block][i];
    }
  }
}

/// sums.values += probabilities times values from `key` of the tile at `v`.
template <class V>
__device__ __forceinline__ void multiply_values(
    RowSums<V>& sums, const float (&probabilities)[V::kKeysPerWarp / 8][4], std::uint32_t v,
    int key) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int step = 0; step < V::kKeysPerWarp / 16; ++step) {
    const float(&low)[4] = probabilities[2 * step];
    const float(&high)[4] = probabilities[2 * step + 1];
    const std::uint32_t a[4] = {pack<V::kMma>(low[0], low[1]), pack<V::kMma>(low[2], low[3]),
                                pack<V::kMma>(high[0], high[1]), pack<V::kMma>(high[2], high[3])};
    const int row = key + step * 16 + lane % 16;
    if constexpr (V::kConvertsKv) {
#pragma unroll
      for (int block = 0; block < V::kHeadDim / 8; block += 4) {
        std::uint32_t raw[4];
        load_matrices_transposed(raw, v + swizzled<V::kKvRowBytes>(row, block / 2 + lane / 16));
#pragma unroll
        for (int i = 0; i < 4; ++i) raw[i] = __byte_perm(raw[i], 0, 0x3120);  // even, odd columns
#pragma unroll
        for (int i = 0; i < 4; i += 2) {
          mma<V>(sums.values[block + i], a, e4m3_pair_to_fp16(raw[i]),
                 e4m3_pair_to_fp16(raw[i + 1]));
          mma<V>(sums.values[block + i + 1], a, e4m3_high_pair_to_fp16(raw[i]),
                 e4m3_high_pair_to_fp16(raw[i + 1]));
        }
      }
    } else {
#pragma unroll
      for (int block = 0; block < V::kHeadDim / 8; block += 2) {
        std::uint32_t b[4];
        load_matrices_transposed(b, v + swizzled<V::kKvRowBytes>(row, block + lane / 16));
        mma<V>(sums.values[block], a, b[0], b[1]);
        mma<V>(sums.values[block + 1], a, b[2], b[3]);
      }
    }
  }
}

/// One tile: keys from `key` within it, `first_key` among all of the sequence.
template <class V, class QueryFragment>
__device__ __forceinline__ void attend(RowSums<V>& sums, QueryFragment&& query,
                                       const RowLimits& limits, std::uint32_t stage, int key,
                                       int first_key, bool masked) {
  float scores[V::kKeysPerWarp / 8][4] = {};
  multiply_keys<V>(scores, query, stage, key);
#pragma unroll
  for (int block = 0; block < V::kKeysPerWarp / 8; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[block][i] *= limits.scale[i / 2];
  }
  if (masked) mask_scores(scores, limits, first_key + key);
  update_softmax(scores, sums);
  multiply_values(sums, scores, stage + V::kKvTileBytes, key);
}

}  // namespace cubist_decode
