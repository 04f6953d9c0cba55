#pragma once

#include <cstdint>

#include "attend.cuh"
#include "convert.cuh"
#include "output.cuh"
#include "ptx.cuh"
#include "query.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_variant.h"

/// A consumer warpgroup: 64 rows times one tile. A thread holds rows g and g + 8 of its warp's 16
/// (g = lane / 4) and columns 8 i + 2 (lane % 4) and the next of each block i of eight.
namespace cubist_decode {

/// A row's maximum may be this much above the one its sums are relative to before they are
/// rescaled. Unit: powers of two; 2^8 times a probability is far inside the range of either 16-bit
/// type.
inline constexpr float kRescaleAt = 8.0F;

/// One thread's part of its two rows' attention.
template <class V>
struct StreamSums {
  float values[V::kHeadDim / 2];  ///< [block of 8 columns][row g: 2, row g + 8: 2]
  float maximum[2];               ///< what the sums are relative to, scaled, in powers of two
  float sum[2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < V::kHeadDim / 2; ++i) values[i] = 0.0F;
    maximum[0] = maximum[1] = -INFINITY;
    sum[0] = sum[1] = 0.0F;
  }
};

/// This warpgroup's rows of a part: rows [first, first + 64) of the CTA, of which `count` are used.
struct ConsumerRows {
  int first;
  int count;
};
template <class V>
__device__ __forceinline__ ConsumerRows rows_of_consumer(const Work& work, int consumer) {
  const int rows = work.num_tokens * work.rows_per_token;
  if constexpr (!V::kSharesTile) return {0, rows};
  const int half = ((rows + 1) / 2 + 15) / 16 * 16;
  return {consumer * half, min(half, rows - consumer * half)};
}

/// threadIdx.x, which the compiler is not to know again elsewhere: addresses that are needed once a
/// part would else be kept, in registers that tiles need, from part to part.
__device__ __forceinline__ int forgotten_thread() {
  int thread = static_cast<int>(threadIdx.x);
  asm volatile("" : "+r"(thread));
  return thread;
}

/// Limits of this thread's two rows.
__device__ __forceinline__ RowLimits limits_of(const Work& work, ConsumerRows rows) {
  RowLimits limits;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const Row row = row_of(work, rows.first + thread / 32 * 16 + thread % 32 / 4 + 8 * r);
    limits.first_key[r] = first_key(work, row.token);
    limits.end_key[r] = end_key(work, row.token);
  }
  return limits;
}

/// Copies the consumer's rows of Q to shared memory, as panels of 128-byte swizzled rows; spare
/// rows become zero. Negated where the scale is negative, so that its size alone matters
/// afterwards. With e4m3 K the rows are scaled fp16; `row_scales`: what undoes that. All of the
/// warpgroup's 128 threads call; the copy is ready for wgmma on return.
template <class V>
__device__ __forceinline__ void stage_rows(const CubistDecodeParams& params, const Work& work,
                                           ConsumerRows rows, bool negate, unsigned char* q,
                                           float* row_scales, int barrier) {
  constexpr int kChunks = V::kHeadDim / 8;
  constexpr int kRounds = 64 * kChunks / 128;
  const int thread = (V::kRunsAhead ? forgotten_thread() : static_cast<int>(threadIdx.x)) % 128;
  const std::uint32_t sign = negate ? 0x80008000U : 0U;
  uint4 eights[kRounds];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int index = (i * 128 + thread) / kChunks;
    const Row row = row_of(work, rows.first + index);
    eights[i] = make_uint4(0, 0, 0, 0);
    if (index < rows.count && row.valid) {
      const std::int64_t element =
          (work.q_row + work.first_token + row.token) * params.q_stride_tokens +
          row.head * params.q_stride_heads + thread % kChunks * 8;
      eights[i] = load_eight<V::kQ>(params.q, element);
    }
  }
  sync_named(barrier, 128);  // every warp is done with the rows that were here
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int index = (i * 128 + thread) / kChunks;
    const int chunk = thread % kChunks;
    uint4 eight = eights[i];
    if constexpr (V::kConvertsKv) {
      float down = 1.0F;
      if constexpr (V::kScalesQ) down = scale_to_fp16<V::kQ, kChunks>(eight);
      if (chunk == 0) row_scales[index] = down;
    }
    eight.x ^= sign;
    eight.y ^= sign;
    eight.z ^= sign;
    eight.w ^= sign;
    *reinterpret_cast<uint4*>(q + chunk / 8 * V::kPanelBytes + index * 128 +
                              ((chunk % 8) ^ (index % 8)) * 16) = eight;
  }
  fence_async_proxy();
  sync_named(barrier, 128);
}

/// Descriptor bases of a tile's operands.
struct TileOperands {
  std::uint32_t k;
  std::uint32_t v;
};
template <class V>
__device__ __forceinline__ TileOperands operands_of(std::uint32_t stage) {
  return {descriptor_base(stage, 16), descriptor_base(stage + V::kKvTileBytes, V::kPanelBytes)};
}

/// Zeroes the rows of a tile of V that hold no key of [key_begin, key_end): 0 times what lies there
/// must be 0. The threads of one or two warpgroups share the work, then meet.
template <class V>
__device__ __forceinline__ void zero_unseen_values(const Work& work, int first_key,
                                                   unsigned char* v, int thread, int threads,
                                                   int barrier) {
  constexpr int kPanelChunks = V::kPanelRowBytes / 16;
  constexpr int kChunks = V::kPanels * kPanelChunks;
  for (int i = thread; i < 64 * kChunks; i += threads) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    const int key = first_key + row;
    if (key < work.key_begin || key >= work.key_end) {
      *reinterpret_cast<uint4*>(v + chunk / kPanelChunks * V::kPanelBytes +
                                row * V::kPanelRowBytes + chunk % kPanelChunks * 16) =
          make_uint4(0, 0, 0, 0);
    }
  }
  fence_async_proxy();
  sync_named(barrier, threads);
}

template <class V>
__device__ __forceinline__ void multiply_tile_keys(float (&scores)[32], std::uint32_t q,
                                                   std::uint32_t k) {
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < V::kHeadDim / 16; ++step) {
    const int offset = step / 4 * V::kPanelBytes + step % 4 * 32;
    wgmma_keys<V::kQ>(scores, matrix_descriptor(q, offset), matrix_descriptor(k, offset),
                      step > 0 ? 1 : 0);
  }
  wgmma_commit();
  wgmma_wait();
  pin(scores);
}

template <class V>
__device__ __forceinline__ void multiply_tile_values(StreamSums<V>& sums,
                                                     std::uint32_t (&probabilities)[16],
                                                     std::uint32_t v) {
  pin(probabilities);
  pin(sums.values);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    wgmma_values<V::kQ>(sums.values, probabilities + 4 * step,
                        matrix_descriptor(v, step * 16 * 128));
  }
  wgmma_commit();
  wgmma_wait();
  pin(sums.values);
}

/// Hides what a row does not see; key of score [8 j + c]: first_key + 8 j + 2 (lane % 4) + c % 2.
__device__ __forceinline__ void mask_tile(float (&scores)[32], const RowLimits& limits,
                                          int first_key) {
  const int key = first_key + static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int block = 0; block < 8; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int at = key + 8 * block + i % 2;
      if (at < limits.first_key[i / 2] || at >= limits.end_key[i / 2]) {
        scores[4 * block + i] = -INFINITY;
      }
    }
  }
}

/// The largest score of each of the thread's two rows, scaled.
struct RowMaxima {
  float of_row[2];
};
__device__ __forceinline__ RowMaxima maxima_of(const float (&scores)[32], float scale) {
  float largest[2] = {scores[0], scores[2]};
#pragma unroll
  for (int block = 0; block < 8; ++block) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      largest[r] =
          fmaxf(largest[r], fmaxf(scores[4 * block + 2 * r], scores[4 * block + 2 * r + 1]));
    }
  }
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffU, largest[r], 1));
    largest[r] = fmaxf(largest[r], __shfl_xor_sync(0xffffffffU, largest[r], 2)) * scale;
  }
  return {{largest[0], largest[1]}};
}

/// Whether a maximum of the warp's rows grew by more than kRescaleAt.
template <class V>
__device__ __forceinline__ bool must_rescale(const RowMaxima& largest, const StreamSums<V>& sums) {
  return __any_sync(0xffffffffU, largest.of_row[0] > sums.maximum[0] + kRescaleAt ||
                                     largest.of_row[1] > sums.maximum[1] + kRescaleAt);
}

/// Makes the maxima what the rows' sums are relative to; `weight`: what all that was summed before
/// is to be multiplied by. The values are left to the caller.
template <class V>
__device__ __forceinline__ void raise_maxima(const RowMaxima& largest, StreamSums<V>& sums,
                                             float (&weight)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float maximum = fmaxf(sums.maximum[r], largest.of_row[r]);
    weight[r] = weight_of(sums.maximum[r], maximum);
    sums.maximum[r] = maximum;
    sums.sum[r] *= weight[r];
  }
}

template <class V>
__device__ __forceinline__ void rescale_values(StreamSums<V>& sums, const float (&weight)[2]) {
#pragma unroll
  for (int i = 0; i < V::kHeadDim / 2; ++i) sums.values[i] *= weight[i / 2 % 2];
}

/// Probabilities of the tile from its scores, as A operand, added to the rows' sums.
template <class V>
__device__ __forceinline__ void add_probabilities(const float (&scores)[32], float scale,
                                                  StreamSums<V>& sums,
                                                  std::uint32_t (&probabilities)[16]) {
  const float reference[2] = {sums.maximum[0] == -INFINITY ? 0.0F : sums.maximum[0],
                              sums.maximum[1] == -INFINITY ? 0.0F : sums.maximum[1]};
#pragma unroll
  for (int block = 0; block < 8; ++block) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float low = exp2_approx(fmaf(scores[4 * block + 2 * r], scale, -reference[r]));
      const float high = exp2_approx(fmaf(scores[4 * block + 2 * r + 1], scale, -reference[r]));
      sums.sum[r] += low + high;
      probabilities[2 * block + r] = pack<V::kQ>(low, high);
    }
  }
}

template <class V>
__device__ __forceinline__ void update_stream_softmax(const float (&scores)[32], float scale,
                                                      StreamSums<V>& sums,
                                                      std::uint32_t (&probabilities)[16]) {
  const RowMaxima largest = maxima_of(scores, scale);
  if (must_rescale(largest, sums)) {
    float weight[2];
    raise_maxima(largest, sums, weight);
    rescale_values(sums, weight);
  }
  add_probabilities(scores, scale, sums, probabilities);
}

}  // namespace cubist_decode
