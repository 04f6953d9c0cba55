#pragma once

#include <cstdint>

#include "output.cuh"
#include "ptx.cuh"
#include "stream_attend.cuh"

/// Puts the parts of a row together: those of the consumers that split a CTA's tiles, in shared
/// memory; those of the CTAs that share a sequence, in global memory. Sums travel thread by thread,
/// 16 bytes a thread at a time. The same bits in every launch, whichever part is ready last.
namespace cubist_decode {

/// One consumer's sums in memory: [head_dim / 8][128 threads] float4, then {maximum, sum} of the
/// thread's rows g and g + 8.
template <class V>
__device__ __forceinline__ float4* thread_sums(float* from) {
  return reinterpret_cast<float4*>(from) + threadIdx.x % 128;
}
template <class V>
__device__ __forceinline__ float4 stats_of(const StreamSums<V>& sums) {
  return make_float4(sums.maximum[0], sums.sum[0], sums.maximum[1], sums.sum[1]);
}

/// a = a and b joined. Products are rounded before they are added, so that joining b and a gives
/// the same bits.
template <class V>
__device__ __forceinline__ void join_sums(StreamSums<V>& a, const float4 (&values)[V::kHeadDim / 8],
                                          float4 stats) {
  const float maximum[2] = {stats.x, stats.z};
  const float sum[2] = {stats.y, stats.w};
  float own[2];
  float other[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float joined = fmaxf(a.maximum[r], maximum[r]);
    own[r] = weight_of(a.maximum[r], joined);
    other[r] = weight_of(maximum[r], joined);
    a.maximum[r] = joined;
    a.sum[r] = __fadd_rn(__fmul_rn(a.sum[r], own[r]), __fmul_rn(sum[r], other[r]));
  }
#pragma unroll
  for (int i = 0; i < V::kHeadDim / 8; ++i) {
    const float four[4] = {values[i].x, values[i].y, values[i].z, values[i].w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float& value = a.values[4 * i + j];
      value = __fadd_rn(__fmul_rn(value, own[j / 2]), __fmul_rn(four[j], other[j / 2]));
    }
  }
}

/// The row sums of the quad's four threads: each has summed its own columns.
template <class V>
__device__ __forceinline__ void add_row_sums(StreamSums<V>& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sums.sum[r] += __shfl_xor_sync(0xffffffffU, sums.sum[r], 1);
    sums.sum[r] += __shfl_xor_sync(0xffffffffU, sums.sum[r], 2);
  }
}

inline constexpr int kScratchFree = 5;  // named barriers; 1 .. 4: one a warpgroup, and both
inline constexpr int kScratchReady = 6;

/// Consumer 0 gets the sums of the others. True in consumer 0.
template <class V>
__device__ __forceinline__ bool join_consumers(StreamSums<V>& sums, int consumer, bool has_rows,
                                               float* scratch) {
  constexpr int kThreads = 128 * V::kConsumers;
  sync_named(kScratchFree, kThreads);
  if (consumer > 0 && has_rows) {
    float4* to = thread_sums<V>(scratch + (consumer - 1) * V::kSumFloats);
#pragma unroll
    for (int i = 0; i < V::kHeadDim / 8; ++i) {
      to[i * 128] = make_float4(sums.values[4 * i], sums.values[4 * i + 1], sums.values[4 * i + 2],
                                sums.values[4 * i + 3]);
    }
    to[V::kHeadDim / 8 * 128] = stats_of(sums);
  }
  sync_named(kScratchReady, kThreads);
  if (consumer > 0) return false;
  if (has_rows) {
#pragma unroll 1
    for (int other = 0; other < V::kConsumers - 1; ++other) {
      const float4* from = thread_sums<V>(scratch + other * V::kSumFloats);
      float4 values[V::kHeadDim / 8];
#pragma unroll
      for (int i = 0; i < V::kHeadDim / 8; ++i) values[i] = from[i * 128];
      join_sums(sums, values, from[V::kHeadDim / 8 * 128]);
    }
  }
  return true;
}

/// Partial sums of this CTA's part of the item that group `group` has: a CTA has two places, one
/// for the part that begins a sequence and one for the part that does not.
template <class V>
__device__ __forceinline__ float4* partial_sums(const CubistDecodeParams& params, int group,
                                                bool has_beginning, int half) {
  constexpr int kHalves = V::kSharesTile ? 2 : 1;
  const std::int64_t cta = static_cast<std::int64_t>(group) * gridDim.x + blockIdx.x;
  const std::int64_t place = (cta * 2 + (has_beginning ? 1 : 0)) * kHalves + half;
  return thread_sums<V>(params.partial_o + place * V::kSumFloats);
}

template <class V>
__device__ __forceinline__ void join_partial(StreamSums<V>& sums, const float4* from) {
  float4 values[V::kHeadDim / 8];
#pragma unroll
  for (int i = 0; i < V::kHeadDim / 8; ++i) values[i] = __ldcg(from + i * 128);
  join_sums(sums, values, __ldcg(from + V::kHeadDim / 8 * 128));
}

/// Whether this warpgroup's part, which it has written, is the last of its item's to be there; the
/// counter is zero again then. `half`: which of `halves` parts of the rows it has.
__device__ __forceinline__ bool is_last_of_parts(const CubistDecodeParams& params, const Part& part,
                                                 int halves, int half, int barrier, int* last) {
  sync_named(barrier, 128);
  if (threadIdx.x % 128 == 0) {
    std::int32_t* counter =
        params.counters +
        (static_cast<std::int64_t>(part.batch) * gridDim.x + blockIdx.x) * halves + half;
    *last = add_acquire_release(counter, 1) == part.last_group - part.first_group ? 1 : 0;
    if (*last != 0) *counter = 0;
  }
  sync_named(barrier, 128);
  return *last != 0;
}

/// Writes this CTA's part, and, where it is the last, joins all. True: `sums` are the rows' own and
/// are to be written. Two parts: the last keeps its own in registers; more: all are read, in order.
template <class V>
__device__ __forceinline__ bool join_groups(const CubistDecodeParams& params, const Part& part,
                                            StreamSums<V>& sums, int half, bool has_rows,
                                            int barrier, int* last) {
  constexpr int kHalves = V::kSharesTile ? 2 : 1;
  const int own_group = static_cast<int>(blockIdx.y);
  if (has_rows) {
    float4* to = partial_sums<V>(params, own_group, part.has_beginning, half);
#pragma unroll
    for (int i = 0; i < V::kHeadDim / 8; ++i) {
      __stcg(to + i * 128, make_float4(sums.values[4 * i], sums.values[4 * i + 1],
                                       sums.values[4 * i + 2], sums.values[4 * i + 3]));
    }
    __stcg(to + V::kHeadDim / 8 * 128, stats_of(sums));
  }
  const bool joins = is_last_of_parts(params, part, kHalves, half, barrier, last);
  if (!joins || !has_rows) return joins;
  if (part.last_group == part.first_group + 1) {
    const int other = part.first_group + part.last_group - own_group;
    join_partial(sums, partial_sums<V>(params, other, other == part.first_group, half));
    return true;
  }
  sums.clear();
#pragma unroll 1
  for (int group = part.first_group; group <= part.last_group; ++group) {
    join_partial(sums, partial_sums<V>(params, group, group == part.first_group, half));
  }
  return true;
}

/// Writes columns [first_column, first_column + 8 kBlocks) of the thread's row g + 8 r of O, two at
/// a time, from unnormalised sums, and, with the first of them, its LSE.
template <class V, int kBlocks>
__device__ __forceinline__ void write_half_row(const CubistDecodeParams& params, const Work& work,
                                               ConsumerRows rows, int r, Softmax softmax,
                                               const float (&values)[4 * kBlocks],
                                               float output_scale, int first_column) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int index = thread / 32 * 16 + thread % 32 / 4 + 8 * r;
  const Row row = row_of(work, rows.first + index);
  if (index >= rows.count || !row.valid) return;
  const float keys_maximum = softmax.maximum;
  if (params.sinks != nullptr) softmax = add_sink(softmax, params.sinks[row.head]);
  const bool empty = softmax.sum == 0.0F;
  const float factor =
      empty ? 0.0F
            : __fdividef(weight_of(keys_maximum, softmax.maximum) * output_scale, softmax.sum);
  const std::int64_t token = work.q_row + work.first_token + row.token;
  auto* o = reinterpret_cast<std::uint32_t*>(static_cast<std::uint16_t*>(params.o) +
                                             token * params.o_stride_tokens +
                                             row.head * params.o_stride_heads + first_column) +
            thread % 4;
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) {
    o[4 * block] =
        pack<V::kO>(values[4 * block + 2 * r] * factor, values[4 * block + 2 * r + 1] * factor);
  }
  if (params.lse != nullptr && first_column == 0 && thread % 4 == 0) {
    params.lse[token * params.num_q_heads + row.head] =
        empty ? -INFINITY : softmax.maximum + log2_approx(softmax.sum);
  }
}

/// Writes the thread's two rows, all of their consumer's columns.
template <class V>
__device__ __forceinline__ void write_rows(const CubistDecodeParams& params, const Work& work,
                                           ConsumerRows rows, const StreamSums<V>& sums,
                                           float output_scale, int first_column = 0) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    write_half_row<V, V::kHeadDim / 8>(params, work, rows, r, {sums.maximum[r], sums.sum[r]},
                                       sums.values, output_scale, first_column);
  }
}

}  // namespace cubist_decode
