#pragma once

#include <cstdint>

#include "attend.cuh"
#include "output.cuh"
#include "ptx.cuh"
#include "variant.h"
#include "work.cuh"

/// Puts the parts of a row together: those of the warps of one CTA, in shared memory, and those of
/// the CTAs that share a sequence, in global memory. Always in the same order: results do not
/// depend on which part was ready first.
namespace cubist_decode {

/// One warp's sums in shared memory: [warp][16 rows][kSumPitch] and, behind those of all warps,
/// {maximum, sum} [warp][16 rows].
template <class V>
__device__ __forceinline__ void store_warp_sums(const RowSums<V>& sums, unsigned char* smem) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int g = static_cast<int>(threadIdx.x) % 32 / 4;
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = warp * 16 + g + 8 * r;
    float* to = reinterpret_cast<float*>(smem) + row * V::kSumPitch;
    if constexpr (V::kConvertsKv) {
#pragma unroll
      for (int i = 0; i < V::kHeadDim / 8; i += 2) {
        *reinterpret_cast<float4*>(to + i * 8 + t * 4) =
            make_float4(sums.values[i][2 * r], sums.values[i + 1][2 * r], sums.values[i][2 * r + 1],
                        sums.values[i + 1][2 * r + 1]);
      }
    } else {
#pragma unroll
      for (int i = 0; i < V::kHeadDim / 8; ++i) {
        *reinterpret_cast<float2*>(to + i * 8 + t * 2) =
            make_float2(sums.values[i][2 * r], sums.values[i][2 * r + 1]);
      }
    }
    float sum = sums.sum[r];
    sum += __shfl_xor_sync(0xffffffffU, sum, 1);
    sum += __shfl_xor_sync(0xffffffffU, sum, 2);
    if (t == 0) {
      reinterpret_cast<float2*>(smem + V::kSumBytes)[row] = make_float2(sums.maximum[r], sum);
    }
  }
}

/// Adds eight columns of a row over the warps that shared its keys.
template <class V>
__device__ __forceinline__ Softmax join_warps(const unsigned char* smem, int row, int column,
                                              float (&sums)[8]) {
  const auto* stats = reinterpret_cast<const float2*>(smem + V::kSumBytes);
  const int first_row = row / 16 * V::kKeyGroups * 16 + row % 16;  // that of the group's first warp
  Softmax softmax = {-INFINITY, 0.0F};
#pragma unroll
  for (int part = 0; part < V::kKeyGroups; ++part) {
    softmax.maximum = fmaxf(softmax.maximum, stats[first_row + part * 16].x);
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) sums[i] = 0.0F;
#pragma unroll
  for (int part = 0; part < V::kKeyGroups; ++part) {
    const int part_row = first_row + part * 16;
    const float weight = weight_of(stats[part_row].x, softmax.maximum);
    softmax.sum += weight * stats[part_row].y;
    const float* from = reinterpret_cast<const float*>(smem) + part_row * V::kSumPitch + column;
    const float4 low = *reinterpret_cast<const float4*>(from);
    const float4 high = *reinterpret_cast<const float4*>(from + 4);
    const float eight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) sums[i] += weight * eight[i];
  }
  return softmax;
}

/// Row 0 of CTA `split` among those of work.tile, in partial_stats and, times head_dim, in
/// partial_o.
template <class V>
__device__ __forceinline__ std::int64_t partial_row(const CubistDecodeParams& params,
                                                    const Work& work, int split) {
  return (work.tile * params.num_ctas_kv + split) * V::kTileQ;
}

template <class V>
__device__ __forceinline__ void write_partial(const CubistDecodeParams& params, const Work& work,
                                              int row, int column, const float (&sums)[8],
                                              Softmax softmax) {
  const std::int64_t at = partial_row<V>(params, work, work.split) + row;
  auto* to = reinterpret_cast<float4*>(params.partial_o + at * V::kHeadDim + column);
  __stcg(to, make_float4(sums[0], sums[1], sums[2], sums[3]));
  __stcg(to + 1, make_float4(sums[4], sums[5], sums[6], sums[7]));
  if (column == 0) {
    __stcg(reinterpret_cast<float2*>(params.partial_stats) + at,
           make_float2(softmax.maximum, softmax.sum));
  }
}

/// Whether this CTA is the last of its tile to have written its part; the counter is zero again
/// then. The same answer in every thread; from then on all of shared memory but `last` is free.
__device__ __forceinline__ bool is_last_of_tile(const CubistDecodeParams& params, const Work& work,
                                                int* last) {
  __syncthreads();
  if (threadIdx.x == 0) {
    const int before = add_acquire_release(params.counters + work.tile, 1);
    *last = before == work.num_splits - 1 ? 1 : 0;
    if (*last != 0) params.counters[work.tile] = 0;
  }
  __syncthreads();
  return *last != 0;
}

/// The weight of each CTA's part of each row, [split][row], and behind the largest possible number
/// of them the rows' {maximum} and {sum}. A part that holds NaN weighs NaN, so that it is not lost
/// where its maximum says that nothing was seen.
template <class V>
__device__ __forceinline__ void weigh_parts(const CubistDecodeParams& params, const Work& work,
                                            float* weights) {
  const auto* stats =
      reinterpret_cast<const float2*>(params.partial_stats) + partial_row<V>(params, work, 0);
  static_assert(V::kTileQ <= V::kThreads, "a thread has one row at most");
  const int row = static_cast<int>(threadIdx.x);
  if (row < V::kTileQ && row_of(work, row).valid) {
    Softmax softmax = {-INFINITY, 0.0F};
#pragma unroll 4
    for (int split = 0; split < work.num_splits; ++split) {
      softmax.maximum = fmaxf(softmax.maximum, __ldcg(stats + split * V::kTileQ + row).x);
    }
#pragma unroll 4
    for (int split = 0; split < work.num_splits; ++split) {
      const float2 part = __ldcg(stats + split * V::kTileQ + row);
      const float weight = part.y != part.y ? part.y : weight_of(part.x, softmax.maximum);
      weights[split * V::kTileQ + row] = weight;
      softmax.sum += weight * part.y;
    }
    weights[V::kMaxCtasKv * V::kTileQ + row] = softmax.maximum;
    weights[(V::kMaxCtasKv + 1) * V::kTileQ + row] = softmax.sum;
  }
}

/// Adds the parts of all CTAs of the tile and writes its rows. `smem` is free to be used.
template <class V>
__device__ __forceinline__ void join_ctas(const CubistDecodeParams& params, const Work& work,
                                          unsigned char* smem, float output_scale) {
  auto* weights = reinterpret_cast<float*>(smem);
  weigh_parts<V>(params, work, weights);
  __syncthreads();
  constexpr int kColumns = V::kHeadDim / 8;  // eight elements each
  static_assert(V::kTileQ * kColumns % V::kThreads == 0, "the same number for every thread");
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < V::kTileQ * kColumns; i += V::kThreads) {
    const int index = i / kColumns;
    const int column = i % kColumns * 8;
    const Row row = row_of(work, index);
    if (!row.valid) continue;
    float sums[8] = {};
    const float* from =
        params.partial_o + (partial_row<V>(params, work, 0) + index) * V::kHeadDim + column;
#pragma unroll 4
    for (int split = 0; split < work.num_splits; ++split) {
      const float weight = weights[split * V::kTileQ + index];
      const auto* part = reinterpret_cast<const float4*>(from + static_cast<std::int64_t>(split) *
                                                                    V::kTileQ * V::kHeadDim);
      const float4 low = __ldcg(part);
      const float4 high = __ldcg(part + 1);
      const float eight[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int j = 0; j < 8; ++j) sums[j] += weight * eight[j];
    }
    write_row<V>(params, work, row, column, sums,
                 {weights[V::kMaxCtasKv * V::kTileQ + index],
                  weights[(V::kMaxCtasKv + 1) * V::kTileQ + index]},
                 output_scale);
  }
}

/// Joins the warps, then writes the rows or, where other CTAs share them, this CTA's part; the last
/// of those joins the parts.
template <class V>
__device__ __forceinline__ void finish(const CubistDecodeParams& params, const Work& work,
                                       const RowSums<V>& sums, unsigned char* smem) {
  __syncthreads();  // every warp has read the last tile
  store_warp_sums(sums, smem);
  __syncthreads();
  const float output_scale =
      params.bmm2_scale != nullptr ? *params.bmm2_scale : params.output_scale;
  constexpr int kColumns = V::kHeadDim / 8;  // eight elements each
  static_assert(V::kTileQ * kColumns % V::kThreads == 0, "the same number for every thread");
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < V::kTileQ * kColumns; i += V::kThreads) {
    const int index = i / kColumns;
    const int column = i % kColumns * 8;
    const Row row = row_of(work, index);
    if (!row.valid) continue;
    float eight[8];
    const Softmax softmax = join_warps<V>(smem, index, column, eight);
    if (work.num_splits == 1) {
      write_row<V>(params, work, row, column, eight, softmax, output_scale);
    } else {
      write_partial<V>(params, work, index, column, eight, softmax);
    }
  }
  auto* last = reinterpret_cast<int*>(smem + V::kFlagOffset);
  if (work.num_splits > 1 && is_last_of_tile(params, work, last)) {
    join_ctas<V>(params, work, smem, output_scale);
  }
}

}  // namespace cubist_decode
