#pragma once

#include <cstdint>

#include "convert.cuh"
#include "output.cuh"
#include "ptx.cuh"
#include "stream_join.cuh"
#include "transposed_attend.cuh"

/// As stream_join.cuh, for transposed sums: a thread has every eighth pair of columns, 1 / 128 of
/// their values.
namespace cubist_decode {

/// The maximum and sum of each of a thread's columns, over all keys of the part.
template <class V>
struct ColumnStats {
  float maximum[V::kTileQ / 4];
  float sum[V::kTileQ / 4];
};

/// Where float4 `i` of this thread's values of block m and eight columns lies.
template <class V>
__device__ __forceinline__ float4* place_of_values(float* from, int thread, int m, int block) {
  return reinterpret_cast<float4*>(from) + (m * (V::kTileQ / 8) + block) * 128 + thread % 128;
}
/// {maximum, sum} of columns 8 block + 2 t and the next.
template <class V>
__device__ __forceinline__ float4* place_of_stats(float* from, int thread, int block) {
  return reinterpret_cast<float4*>(from + V::kValueFloats) + 4 * block + thread % 4;
}
template <class V>
__device__ __forceinline__ float4 values_of(const TransposedSums<V>& sums, int m, int block) {
  const float* four = sums.values[m] + 4 * block;
  return make_float4(four[0], four[1], four[2], four[3]);
}

/// Keeps loads of wide tiles' later blocks from being begun before these are used: there would be
/// no registers for all of them at once.
template <class V>
__device__ __forceinline__ void limit_loads(int block) {
  if (V::kValueFloats >= 128 * 48 && block % 3 == 2) asm volatile("" ::: "memory");
}

/// Weights that join two parts of a column; the first becomes the maximum of both.
struct JoinWeights {
  float own;
  float other;
};
__device__ __forceinline__ JoinWeights raise_to(float& maximum, float other) {
  const float joined = fmaxf(maximum, other);
  const JoinWeights weights = {weight_of(maximum, joined), weight_of(other, joined)};
  maximum = joined;
  return weights;
}
/// Products are rounded before they are added, so that either order gives the same bits.
__device__ __forceinline__ float weighted_sum(float own, float other, JoinWeights weights) {
  return __fadd_rn(__fmul_rn(own, weights.own), __fmul_rn(other, weights.other));
}

/// a = a and b joined, eight columns.
template <class V>
__device__ __forceinline__ void join_block(TransposedSums<V>& sums, ColumnStats<V>& stats,
                                           int block, const float4 (&values)[V::kBlocks],
                                           float4 other) {
  const JoinWeights low = raise_to(stats.maximum[2 * block], other.x);
  const JoinWeights high = raise_to(stats.maximum[2 * block + 1], other.z);
  stats.sum[2 * block] = weighted_sum(stats.sum[2 * block], other.y, low);
  stats.sum[2 * block + 1] = weighted_sum(stats.sum[2 * block + 1], other.w, high);
#pragma unroll
  for (int m = 0; m < V::kBlocks; ++m) {
    float* four = sums.values[m] + 4 * block;
    four[0] = weighted_sum(four[0], values[m].x, low);
    four[1] = weighted_sum(four[1], values[m].y, high);
    four[2] = weighted_sum(four[2], values[m].z, low);
    four[3] = weighted_sum(four[3], values[m].w, high);
  }
}

/// Maximum and sum of the columns of a consumer, from what its warps have left in shared memory.
template <class V>
__device__ __forceinline__ float4 consumer_stats(const ColumnMemory<V>& memory, int thread,
                                                 int block) {
  const int i = 4 * block + thread % 4;
  const float2 maximum = *reinterpret_cast<const float2*>(memory.pair(0, i));
  float2 sum = make_float2(0.0F, 0.0F);
#pragma unroll
  for (int warp = 0; warp < 4; ++warp) {
    const float2 part = *memory.exchange(warp, i);
    sum.x += part.x;
    sum.y += part.y;
  }
  return make_float4(maximum.x, sum.x, maximum.y, sum.y);
}

/// Consumer 0 gets the sums of the others and the columns' stats. True in consumer 0.
template <class V>
__device__ __forceinline__ bool join_transposed(TransposedSums<V>& sums, ColumnStats<V>& stats,
                                                const ColumnMemory<V>& memory) {
  const int thread = forgotten_thread();
  const int lane = thread % 32;
  const int warp = thread % 128 / 32;
  auto* scratch = reinterpret_cast<float*>(memory.smem + V::kScratchOffset);
#pragma unroll
  for (int block = 0; block < V::kTileQ / 8; ++block) {
    float2 sum = make_float2(sums.sum[2 * block], sums.sum[2 * block + 1]);
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2) {
      sum.x += __shfl_xor_sync(0xffffffffU, sum.x, distance);
      sum.y += __shfl_xor_sync(0xffffffffU, sum.y, distance);
    }
    if (lane < 4) *memory.exchange(warp, 4 * block + lane) = sum;
    if (memory.consumer > 0) {
#pragma unroll
      for (int m = 0; m < V::kBlocks; ++m) {
        *place_of_values<V>(scratch + (memory.consumer - 1) * V::kValueFloats, thread, m, block) =
            values_of(sums, m, block);
      }
    }
  }
  sync_named(kScratchReady, 128 * V::kConsumers);
  if (memory.consumer > 0) return false;
#pragma unroll
  for (int block = 0; block < V::kTileQ / 8; ++block) {
    const float4 own = consumer_stats(memory, thread, block);
    stats.maximum[2 * block] = own.x;
    stats.sum[2 * block] = own.y;
    stats.maximum[2 * block + 1] = own.z;
    stats.sum[2 * block + 1] = own.w;
#pragma unroll
    for (int other = 1; other < V::kConsumers; ++other) {
      float4 values[V::kBlocks];
#pragma unroll
      for (int m = 0; m < V::kBlocks; ++m) {
        values[m] = *place_of_values<V>(scratch + (other - 1) * V::kValueFloats, thread, m, block);
      }
      join_block(sums, stats, block, values,
                 consumer_stats(ColumnMemory<V>{memory.smem, other}, thread, block));
    }
    limit_loads<V>(block);
  }
  return true;
}

/// Partial sums of this CTA's part of the item that group `group` has.
template <class V>
__device__ __forceinline__ float* transposed_partial(const CubistDecodeParams& params, int group,
                                                     bool has_beginning) {
  const std::int64_t cta = static_cast<std::int64_t>(group) * gridDim.x + blockIdx.x;
  return params.partial_o + (cta * 2 + (has_beginning ? 1 : 0)) * V::kSumFloats;
}

template <class V>
__device__ __forceinline__ void join_transposed_partial(TransposedSums<V>& sums,
                                                        ColumnStats<V>& stats, float* from) {
  const int thread = forgotten_thread();
#pragma unroll
  for (int block = 0; block < V::kTileQ / 8; ++block) {
    float4 values[V::kBlocks];
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m)
      values[m] = __ldcg(place_of_values<V>(from, thread, m, block));
    join_block(sums, stats, block, values, __ldcg(place_of_stats<V>(from, thread, block)));
    limit_loads<V>(block);
  }
}

/// Writes this CTA's part, and, where it is the last, joins all. True: `sums` are the columns' own
/// and are to be written. Two parts: the last keeps its own in registers; more: all are read again,
/// in order.
template <class V>
__device__ __forceinline__ bool join_transposed_groups(const CubistDecodeParams& params,
                                                       const Part& part, TransposedSums<V>& sums,
                                                       ColumnStats<V>& stats, int barrier,
                                                       int* last) {
  const int own_group = static_cast<int>(blockIdx.y);
  const int thread = forgotten_thread();
  float* to = transposed_partial<V>(params, own_group, part.has_beginning);
#pragma unroll
  for (int block = 0; block < V::kTileQ / 8; ++block) {
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
      __stcg(place_of_values<V>(to, thread, m, block), values_of(sums, m, block));
    }
    if (thread % 128 < 4) {
      __stcg(place_of_stats<V>(to, thread, block),
             make_float4(stats.maximum[2 * block], stats.sum[2 * block],
                         stats.maximum[2 * block + 1], stats.sum[2 * block + 1]));
    }
  }
  if (!is_last_of_parts(params, part, 1, 0, barrier, last)) return false;
  if (part.last_group == part.first_group + 1) {
    const int other = part.first_group + part.last_group - own_group;
    join_transposed_partial(sums, stats,
                            transposed_partial<V>(params, other, other == part.first_group));
    return true;
  }
  sums.clear();
#pragma unroll
  for (int i = 0; i < V::kTileQ / 4; ++i) {
    stats.maximum[i] = -INFINITY;
    stats.sum[i] = 0.0F;
  }
#pragma unroll 1
  for (int group = part.first_group; group <= part.last_group; ++group) {
    join_transposed_partial(sums, stats,
                            transposed_partial<V>(params, group, group == part.first_group));
  }
  return true;
}

/// Address of 32 bits of O: elements `element` and the next of a row.
__device__ __forceinline__ std::uint32_t* output_at(const CubistDecodeParams& params,
                                                    const Work& work, Row row, int element) {
  return reinterpret_cast<std::uint32_t*>(static_cast<std::uint16_t*>(params.o) +
                                          (work.q_row + work.first_token + row.token) *
                                              params.o_stride_tokens +
                                          row.head * params.o_stride_heads + element);
}

/// Writes the values of eight columns, which `factor` normalises.
template <class V>
__device__ __forceinline__ void write_block(const CubistDecodeParams& params, const Work& work,
                                            const TransposedSums<V>& sums, int thread, int block,
                                            const float (&factor)[2]) {
  const int lane = thread % 32;
  const int element = thread % 128 / 32 * 16;
  const int rows = work.num_tokens * work.rows_per_token;
  if constexpr (V::kConvertsKv) {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int index = 8 * block + lane % 4 * 2 + k;
      const Row row = row_of(work, index);
      if (index >= rows || !row.valid) continue;
#pragma unroll
      for (int m = 0; m < V::kBlocks; ++m) {
        const float* four = sums.values[m] + 4 * block;
        *output_at(params, work, row, 64 * m + element + lane / 4 * 2) =
            pack<V::kO>(four[k] * factor[k], four[2 + k] * factor[k]);
      }
    }
  } else {
    const int index = 8 * block + lane / 4;
    const Row row = row_of(work, index);
#pragma unroll
    for (int m = 0; m < V::kBlocks; ++m) {
      const float* four = sums.values[m] + 4 * block;
      const std::uint32_t low =
          transpose_matrix(pack<V::kO>(four[0] * factor[0], four[1] * factor[1]));
      const std::uint32_t high =
          transpose_matrix(pack<V::kO>(four[2] * factor[0], four[3] * factor[1]));
      if (index >= rows || !row.valid) continue;
      std::uint32_t* o = output_at(params, work, row, 64 * m + element + lane % 4 * 2);
      o[0] = low;
      o[4] = high;
    }
  }
}

/// Writes the thread's part of O, and the first warp the LSE.
template <class V>
__device__ __forceinline__ void write_columns(const CubistDecodeParams& params, const Work& work,
                                              const TransposedSums<V>& sums,
                                              const ColumnStats<V>& stats, float output_scale) {
  const int thread = forgotten_thread();
  const int rows = work.num_tokens * work.rows_per_token;
#pragma unroll
  for (int block = 0; block < V::kTileQ / 8; ++block) {
    float factor[2];
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const int index = 8 * block + thread % 4 * 2 + k;
      const Row row = row_of(work, index);
      const bool valid = index < rows && row.valid;
      Softmax softmax = {stats.maximum[2 * block + k], stats.sum[2 * block + k]};
      const float keys_maximum = softmax.maximum;
      if (params.sinks != nullptr && valid) softmax = add_sink(softmax, params.sinks[row.head]);
      const bool empty = softmax.sum == 0.0F;
      factor[k] =
          empty ? 0.0F
                : __fdividef(weight_of(keys_maximum, softmax.maximum) * output_scale, softmax.sum);
      if (params.lse != nullptr && valid && thread % 128 < 4) {
        params.lse[(work.q_row + work.first_token + row.token) * params.num_q_heads + row.head] =
            empty ? -INFINITY : softmax.maximum + log2_approx(softmax.sum);
      }
    }
    write_block(params, work, sums, thread, block, factor);
    limit_loads<V>(block);
  }
}

}  // namespace cubist_decode
