#pragma once

#include <cstdint>

#include "convert.cuh"
#include "output.cuh"
#include "ptx.cuh"
#include "query.cuh"
#include "stream_attend.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "swizzle.cuh"
#include "transposed_mma.cuh"
#include "transposed_variant.h"

/// A consumer warpgroup: one tile's 64 keys times all rows of the CTA, which are columns here. Warp
/// w has keys 16 w .. 16 w + 15 of scores and probabilities, a thread keys g and g + 8 of them (g =
/// lane / 4) and columns 8 j + 2 t and the next of each block j of eight (t = lane % 4).
///
/// A column's maximum runs over keys and so over all warps. It is agreed on rarely: probabilities
/// are taken relative to the maximum that was agreed on last, and the barrier that hands them over
/// also tells whether one of them was too large; only then is it raised.
namespace cubist_decode {

/// One thread's part of its columns' attention. Rows of values: of 16-bit V element
/// 64 m + 16 w + g and the one eight further; of e4m3 V element 64 m + 16 w + 2 g and the next.
template <class V>
struct TransposedSums {
  float values[V::kBlocks][V::kTileQ / 2];
  float sum[V::kTileQ / 4];  ///< over the thread's own keys

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
#pragma unroll
      for (int i = 0; i < V::kTileQ / 2; ++i) values[m][i] = 0.0F;
    }
#pragma unroll
    for (int i = 0; i < V::kTileQ / 4; ++i) sum[i] = 0.0F;
  }
};

/// Two neighbouring columns.
struct ColumnPair {
  float2 maximum;  ///< agreed on last, scaled, in powers of two; -inf: no key was seen
  float2 scale;    ///< what scores are multiplied by
};

/// Where a consumer's things lie in shared memory.
template <class V>
struct ColumnMemory {
  unsigned char* smem;
  int consumer;

  /// What `warp` knows of columns 2 i and 2 i + 1: {maximum, maximum}, then, of e4m3, {scale,
  /// scale}.
  __device__ __forceinline__ float* pair(int warp, int i) const {
    return reinterpret_cast<float*>(smem + V::kPairsOffset + consumer * V::kPairsBytes +
                                    (warp * V::kTileQ / 2 + i) * V::kPairBytes);
  }
  /// What `warp` tells the others of columns 2 i and 2 i + 1.
  __device__ __forceinline__ float2* exchange(int warp, int i) const {
    return reinterpret_cast<float2*>(smem + V::kExchangeOffset + consumer * V::kExchangeBytes) +
           warp * V::kTileQ / 2 + i;
  }
  __device__ __forceinline__ float* row_scales() const {
    return reinterpret_cast<float*>(smem + V::kRowScaleOffset);
  }
};

/// Copies the CTA's rows of Q to shared memory, as panels of 128-byte swizzled rows; spare rows
/// become zero. Negated where the scale is negative, so that its size alone matters afterwards.
/// With e4m3 K the rows are scaled fp16, and the elements of each 16 in the order that the A
/// operand has where a thread's four neighbouring keys' elements are its own: 0 1 4 5 8 9 12 13 2 3
/// 6 7 10 11 14
/// 15. All consumers call together, once nobody reads the rows that were
/// there; other threads' rows are there after a barrier.
template <class V>
__device__ __forceinline__ void stage_columns(const CubistDecodeParams& params, const Work& work,
                                              bool negate, const ColumnMemory<V>& memory) {
  constexpr int kThreads = 128 * V::kConsumers;
  constexpr int kChunks = V::kHeadDim / 8;
  constexpr int kRounds = (V::kTileQ * kChunks + kThreads - 1) / kThreads;
  const int thread = forgotten_thread();
  const std::uint32_t sign = negate ? 0x80008000U : 0U;
  const int rows = work.num_tokens * work.rows_per_token;
  uint4 eights[kRounds];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int index = (i * kThreads + thread) / kChunks;
    const Row row = row_of(work, index);
    eights[i] = make_uint4(0, 0, 0, 0);
    if (index < rows && row.valid) {
      const std::int64_t element =
          (work.q_row + work.first_token + row.token) * params.q_stride_tokens +
          row.head * params.q_stride_heads + thread % kChunks * 8;
      eights[i] = load_eight<V::kQ>(params.q, element);
    }
  }
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    const int index = (i * kThreads + thread) / kChunks;
    const int chunk = thread % kChunks;
    if (index >= V::kTileQ) break;  // whole warps: a row's chunks are lanes of one
    uint4 eight = eights[i];
    eight.x ^= sign;
    eight.y ^= sign;
    eight.z ^= sign;
    eight.w ^= sign;
    unsigned char* row = memory.smem + V::kQOffset + chunk / 8 * V::kQPanelBytes + index * 128;
    if constexpr (V::kConvertsKv) {
      float down = 1.0F;
      if constexpr (V::kScalesQ) down = scale_to_fp16<V::kQ, kChunks>(eight);
      if (chunk == 0) memory.row_scales()[index] = down;
      const int first = chunk % 8 & ~1;
      const int half = chunk % 2 * 8;
      *reinterpret_cast<uint2*>(row + (first ^ index % 8) * 16 + half) =
          make_uint2(eight.x, eight.z);
      *reinterpret_cast<uint2*>(row + ((first + 1) ^ index % 8) * 16 + half) =
          make_uint2(eight.y, eight.w);
    } else {
      *reinterpret_cast<uint4*>(row + (chunk % 8 ^ index % 8) * 16) = eight;
    }
  }
  fence_async_proxy();
}

template <class V>
class TransposedAttention {
 public:
  __device__ __forceinline__ TransposedAttention(unsigned char* smem, int consumer, int barrier,
                                                 float scale)
      : memory_{smem, consumer},
        barrier_(barrier),
        scale_(scale),
        q_base_(descriptor_base(shared_address(smem + V::kQOffset), 16)) {
    const std::uint32_t probabilities =
        shared_address(smem + V::kProbabilityOffset + consumer * 2 * V::kProbabilityBytes);
    probabilities_base_ = plain_descriptor_base(probabilities, kGroupBytes);
    // Matrices of eight keys and eight columns: two of keys, then two of columns, for stmatrix.
    probabilities_ =
        probabilities + static_cast<std::uint32_t>((2 * warp() + lane() / 8 % 2) * kGroupBytes +
                                                   lane() / 16 * 128 + lane() % 8 * 16);
  }

  /// Before the first tile of a part; Q is staged.
  __device__ __forceinline__ void begin_part() {
    if constexpr (V::kConvertsKv) {
      for (int i = lane(); i < V::kTileQ / 2; i += 32) {
        const float* down = memory_.row_scales() + 2 * i;
        *reinterpret_cast<float4*>(memory_.pair(warp(), i)) =
            make_float4(-INFINITY, -INFINITY, scale_ * down[0], scale_ * down[1]);
      }
    } else {
      for (int i = lane(); i < V::kTileQ / 2; i += 32) {
        *reinterpret_cast<float2*>(memory_.pair(warp(), i)) = make_float2(-INFINITY, -INFINITY);
      }
    }
    __syncwarp();
  }

  /// One tile of the part; `is_seen`: all its keys by all rows. `release` is called once its stage
  /// is no longer read.
  template <class Release>
  __device__ __forceinline__ void attend(const Work& work, std::uint32_t stage, int first_key,
                                         bool is_seen, TransposedSums<V>& sums, Release&& release) {
    float scores[V::kTileQ / 2];
    const std::uint32_t base = descriptor_base(stage, 16);
    std::uint32_t raw_values[V::kBlocks][2][4];
    ColumnPair pairs[kIsNarrow ? V::kTileQ / 8 : 1];
    begin_scores(scores, stage, base);
    if constexpr (kIsNarrow) {
      read_pairs(pairs);
      if constexpr (V::kConvertsKv) load_values(raw_values, stage + V::kKvTileBytes);
    }
    wgmma_wait();
    pin(scores);
    if (!is_seen) mask(scores, work, first_key);
    write_then_vote(scores, pairs, sums);
    if constexpr (V::kConvertsKv && !kIsNarrow) load_values(raw_values, stage + V::kKvTileBytes);
    if constexpr (V::kConvertsKv) {
      add_converted_values(raw_values, sums, release);
    } else {
      add_values(base, sums);
      release();
    }
    buffer_ ^= 1;
  }

  __device__ __forceinline__ const ColumnMemory<V>& memory() const { return memory_; }

 private:
  // Bytes of the probabilities of eight keys: an 8x8 matrix for each eight columns.
  static constexpr int kGroupBytes = V::kTileQ / 8 * 128;
  // Whether values, and what is known of the columns, fit registers beside keys and scores.
  static constexpr bool kIsNarrow = V::kTileQ <= 32;
  // Sums of two probabilities relative to an old maximum may come near it: far inside the range of
  // either 16-bit type.
  static constexpr float kTooLarge = 256.0F;

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) % 128 / 32; }

  __device__ __forceinline__ ColumnPair pair_of(int block) const {
    const float* pair = memory_.pair(warp(), 4 * block + lane() % 4);
    if constexpr (V::kConvertsKv) {
      const float4 four = *reinterpret_cast<const float4*>(pair);
      return {{four.x, four.y}, {four.z, four.w}};
    } else {
      return {*reinterpret_cast<const float2*>(pair), {scale_, scale_}};
    }
  }

  __device__ __forceinline__ void read_pairs(
      ColumnPair (&pairs)[kIsNarrow ? V::kTileQ / 8 : 1]) const {
    if constexpr (kIsNarrow) {
#pragma unroll
      for (int block = 0; block < V::kTileQ / 8; ++block) pairs[block] = pair_of(block);
    }
  }

  /// Issues the tile's scores: keys times rows of Q.
  __device__ __forceinline__ void begin_scores(float (&scores)[V::kTileQ / 2], std::uint32_t stage,
                                               std::uint32_t base) const {
    using Mma = TransposedMma<V::kTileQ>;
    if constexpr (V::kConvertsKv) {
      std::uint32_t keys[V::kHeadDim / 16][4];
      load_keys(keys, stage);
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < V::kHeadDim / 16; ++step) {
        Mma::keys_of_registers(
            scores, keys[step],
            matrix_descriptor(q_base_, step / 4 * V::kQPanelBytes + step % 4 * 32), step > 0);
      }
    } else {
      wgmma_fence();
#pragma unroll
      for (int step = 0; step < V::kHeadDim / 16; ++step) {
        const int column = step % 4 * 32;
        Mma::template keys<V::kMma>(
            scores, matrix_descriptor(base, step / 4 * V::kPanelBytes + column),
            matrix_descriptor(q_base_, step / 4 * V::kQPanelBytes + column), step > 0);
      }
    }
    wgmma_commit();
  }

  /// The warp's 16 keys as fp16 A operand, the order of elements as in stage_columns.
  __device__ __forceinline__ void load_keys(std::uint32_t (&keys)[V::kHeadDim / 16][4],
                                            std::uint32_t stage) const {
    // The swizzle is an exclusive or, and stages are aligned: so other chunks are one away.
    const std::uint32_t first =
        stage + swizzled<V::kRowBytes>(16 * warp() + lane() % 16, lane() / 16);
#pragma unroll
    for (int pair = 0; pair < V::kHeadDim / 32; ++pair) {
      std::uint32_t raw[4];
      load_matrices(raw, first ^ static_cast<std::uint32_t>(32 * pair));
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        keys[2 * pair + i / 2][i % 2] = e4m3_pair_to_fp16(raw[i]);
        keys[2 * pair + i / 2][i % 2 + 2] = e4m3_high_pair_to_fp16(raw[i]);
      }
    }
#pragma unroll
    for (int step = 0; step < V::kHeadDim / 16; ++step) pin(keys[step]);
  }

  /// e4m3 values: pairs of keys of the warp's 16 elements of each block.
  __device__ __forceinline__ void load_values(std::uint32_t (&raw)[V::kBlocks][2][4],
                                              std::uint32_t values) const {
    const std::uint32_t first = values + swizzled<V::kRowBytes>(lane(), warp());
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        load_matrices_transposed(raw[m][half],
                                 (first ^ static_cast<std::uint32_t>(64 * m)) +
                                     static_cast<std::uint32_t>(32 * half * V::kRowBytes));
      }
    }
  }

  __device__ __forceinline__ void mask(float (&scores)[V::kTileQ / 2], const Work& work,
                                       int first) const {
    const int key = first + 16 * warp() + lane() / 4;
#pragma unroll
    for (int i = 0; i < V::kTileQ / 4; ++i) {
      const int token = row_of(work, i / 2 * 8 + lane() % 4 * 2 + i % 2).token;
      const int from = first_key(work, token);
      const int to = end_key(work, token);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int at = key + 8 * r;
        if (at < from || at >= to) scores[i / 2 * 4 + 2 * r + i % 2] = -INFINITY;
      }
    }
  }

  /// Probabilities, relative to the maxima agreed on, to shared memory and to the sums; once more
  /// where a maximum had to be raised.
  __device__ __forceinline__ void write_then_vote(
      const float (&scores)[V::kTileQ / 2], ColumnPair (&pairs)[kIsNarrow ? V::kTileQ / 8 : 1],
      TransposedSums<V>& sums) const {
    float tile_sum[V::kTileQ / 4];
    const float largest = write_probabilities<false>(scores, pairs, tile_sum);
    fence_async_proxy();
    // Not "at least", so that NaN (-inf - -inf) counts too.
    if (any_of_named(barrier_, 128, !(largest < kTooLarge))) {
      raise_maxima(scores, sums);
      read_pairs(pairs);
      write_probabilities<true>(scores, pairs, tile_sum);
      fence_async_proxy();
      sync_named(barrier_, 128);
    }
#pragma unroll
    for (int i = 0; i < V::kTileQ / 4; ++i) sums.sum[i] += tile_sum[i];
  }

  /// Probabilities of the warp's keys to shared memory; `sum`: of the thread's two keys, whose
  /// largest is returned. `pairs`: of a narrow tile. kRaised: the maxima are at least the tile's
  /// own.
  template <bool kRaised>
  __device__ __forceinline__ float write_probabilities(
      const float (&scores)[V::kTileQ / 2],
      const ColumnPair (&pairs)[kIsNarrow ? V::kTileQ / 8 : 1], float (&sum)[V::kTileQ / 4]) const {
    constexpr int kBlocks = V::kTileQ / 8;
    const std::uint32_t to =
        probabilities_ + static_cast<std::uint32_t>(buffer_ * V::kProbabilityBytes);
    std::uint32_t packed[kBlocks][2];
    float largest = 0.0F;
#pragma unroll
    for (int block = 0; block < kBlocks; ++block) {
      ColumnPair pair = kIsNarrow ? pairs[kIsNarrow ? block : 0] : pair_of(block);
      if constexpr (kRaised) {
        if (pair.maximum.x == -INFINITY) pair.maximum.x = 0.0F;
        if (pair.maximum.y == -INFINITY) pair.maximum.y = 0.0F;
      }
      const float* four = scores + 4 * block;
      const float p0 = exp2_approx(fmaf(four[0], pair.scale.x, -pair.maximum.x));
      const float p1 = exp2_approx(fmaf(four[1], pair.scale.y, -pair.maximum.y));
      const float p2 = exp2_approx(fmaf(four[2], pair.scale.x, -pair.maximum.x));
      const float p3 = exp2_approx(fmaf(four[3], pair.scale.y, -pair.maximum.y));
      sum[2 * block] = p0 + p2;
      sum[2 * block + 1] = p1 + p3;
      largest = max_or_nan(largest, max_or_nan(sum[2 * block], sum[2 * block + 1]));
      packed[block][0] = pack<V::kMma>(p0, p1);
      packed[block][1] = pack<V::kMma>(p2, p3);
      if (block % 2 == 1) {
        store_four_matrices(to + (block - 1) * 128, packed[block - 1][0], packed[block - 1][1],
                            packed[block][0], packed[block][1]);
      }
    }
    if constexpr (kBlocks % 2 == 1) {
      store_two_matrices(to + (kBlocks - 1) * 128, packed[kBlocks - 1][0], packed[kBlocks - 1][1]);
    }
    return largest;
  }

  /// Tells the other warps the largest score of each column, and waits for theirs.
  __device__ __forceinline__ void exchange_largest(const float (&scores)[V::kTileQ / 2]) const {
#pragma unroll
    for (int block = 0; block < V::kTileQ / 8; ++block) {
      float2 largest = make_float2(fmaxf(scores[4 * block], scores[4 * block + 2]),
                                   fmaxf(scores[4 * block + 1], scores[4 * block + 3]));
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2) {
        largest.x = fmaxf(largest.x, __shfl_xor_sync(0xffffffffU, largest.x, distance));
        largest.y = fmaxf(largest.y, __shfl_xor_sync(0xffffffffU, largest.y, distance));
      }
      if (lane() < 4) *memory_.exchange(warp(), 4 * block + lane()) = largest;
    }
    sync_named(barrier_, 128);
  }

  static __device__ __forceinline__ void scale_values(TransposedSums<V>& sums, int block,
                                                      float2 weight) {
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
      float* four = sums.values[m] + 4 * block;
      four[0] *= weight.x;
      four[1] *= weight.y;
      four[2] *= weight.x;
      four[3] *= weight.y;
    }
  }

  /// Makes each column's maximum at least the tile's largest score, and all that was summed before
  /// relative to it.
  __device__ __forceinline__ void raise_maxima(const float (&scores)[V::kTileQ / 2],
                                               TransposedSums<V>& sums) const {
    exchange_largest(scores);
#pragma unroll
    for (int block = 0; block < V::kTileQ / 8; ++block) {
      const int i = 4 * block + lane() % 4;
      const ColumnPair pair = pair_of(block);
      float2 maximum = pair.maximum;
#pragma unroll
      for (int other = 0; other < 4; ++other) {
        const float2 largest = *memory_.exchange(other, i);
        maximum.x = fmaxf(maximum.x, largest.x * pair.scale.x);
        maximum.y = fmaxf(maximum.y, largest.y * pair.scale.y);
      }
      const float2 weight =
          make_float2(weight_of(pair.maximum.x, maximum.x), weight_of(pair.maximum.y, maximum.y));
      scale_values(sums, block, weight);
      sums.sum[2 * block] *= weight.x;
      sums.sum[2 * block + 1] *= weight.y;
      __syncwarp();  // the warp has read the pair
      if (lane() < 4) *reinterpret_cast<float2*>(memory_.pair(warp(), i)) = maximum;
    }
    __syncwarp();
  }

  __device__ __forceinline__ std::uint64_t probabilities_descriptor(int step) const {
    return plain_matrix_descriptor(
        probabilities_base_ + static_cast<std::uint32_t>(buffer_ * (V::kProbabilityBytes / 16)),
        2 * step * kGroupBytes);
  }

  __device__ __forceinline__ void add_values(std::uint32_t base, TransposedSums<V>& sums) const {
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) pin(sums.values[m]);
    wgmma_fence();
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        TransposedMma<V::kTileQ>::template values<V::kMma>(
            sums.values[m],
            matrix_descriptor(base, V::kKvTileBytes + m * V::kPanelBytes + step * 16 * 128),
            probabilities_descriptor(step));
      }
    }
    wgmma_commit();
    wgmma_wait();
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) pin(sums.values[m]);
  }

  /// Even bytes of a raw register are element 2 g of two keys, odd ones element 2 g + 1: rows g and
  /// g + 8 of the A operand.
  template <class Release>
  __device__ __forceinline__ void add_converted_values(const std::uint32_t (&raw)[V::kBlocks][2][4],
                                                       TransposedSums<V>& sums,
                                                       Release&& release) const {
    std::uint32_t a[V::kBlocks][4][4];
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t ordered = __byte_perm(raw[m][i / 4][i % 4], 0, 0x3120);
        a[m][i / 2][i % 2 * 2] = e4m3_pair_to_fp16(ordered);
        a[m][i / 2][i % 2 * 2 + 1] = e4m3_high_pair_to_fp16(ordered);
      }
#pragma unroll
      for (int step = 0; step < 4; ++step) pin(a[m][step]);
      pin(sums.values[m]);
    }
    release();
    wgmma_fence();
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
#pragma unroll
      for (int step = 0; step < 4; ++step) {
        TransposedMma<V::kTileQ>::values_of_registers(sums.values[m], a[m][step],
                                                      probabilities_descriptor(step));
      }
    }
    wgmma_commit();
    wgmma_wait();
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) pin(sums.values[m]);
  }

  const ColumnMemory<V> memory_;
  const int barrier_;
  const float scale_;
  const std::uint32_t q_base_;
  std::uint32_t probabilities_base_;
  std::uint32_t probabilities_;
  int buffer_ = 0;
};

}  // namespace cubist_decode
