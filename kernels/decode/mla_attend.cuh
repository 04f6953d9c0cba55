#pragma once

#include <cstdint>

#include "mla_load.cuh"
#include "mla_variant.h"
#include "ptx.cuh"
#include "stream_attend.cuh"
#include "stream_ptx.cuh"

/// A tile of an MLA kernel, from both sides: the consumer that owns it scores it and hands the
/// probabilities over; each consumer then adds its half of the tile's values. Consumer c owns the
/// tiles that come to lie in stage c.
namespace cubist_decode {

/// What a consumer tells the other, by row. The first of the four threads that have a row alone
/// writes or reads here, and itself arrives at the barrier that says so.
struct MlaStats {
  float maximum[64];  ///< what the sums are relative to since this consumer's newest tile
  float sum[2][64];   ///< of this consumer's own tiles of a part, of every other part
};

/// A thread's two rows. What a spare row holds is left over from elsewhere and must not decide
/// anything for its warp.
struct MlaRows {
  RowLimits limits;
  bool used[2];
};

/// Rows of a thread's warpgroup: this one, and 8 more.
__device__ __forceinline__ int mla_row() {
  return static_cast<int>(threadIdx.x) % 128 / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
}

/// The last panel of Q as A operand, straight from memory; spare rows are zero.
template <class V>
__device__ __forceinline__ void load_last_panel(const CubistDecodeParams& params, const Work& work,
                                                std::uint32_t (&a)[16]) {
  const int rows = work.num_tokens * work.rows_per_token;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int index = mla_row() + 8 * r;
    const Row row = row_of(work, index);
    const bool valid = index < rows && row.valid;
    const std::int64_t element =
        (work.q_row + work.first_token + row.token) * params.q_stride_tokens +
        row.head * params.q_stride_heads + V::kHeadDimVo + threadIdx.x % 4 * 2;
    const auto* q = reinterpret_cast<const std::uint32_t*>(
        static_cast<const std::uint16_t*>(params.q) + (valid ? element : 0));
#pragma unroll
    for (int i = 0; i < 8; ++i) a[i / 2 * 4 + i % 2 * 2 + r] = valid ? q[4 * i] : 0;
  }
}

/// Zeroes the values of a tile's keys outside [key_begin, key_end): 0 times what lies there must be
/// 0. The owner's 128 threads call, after all of the tile has come; they meet at `barrier`.
template <class V>
__device__ __forceinline__ void zero_unseen_keys(const Work& work, int first_key,
                                                 unsigned char* stage, int barrier) {
  constexpr int kChunks = V::kHeadDimVo / 8;
  int thread;  // read here, so that nothing of this rare loop is kept in registers outside of it
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
#pragma unroll 1
  for (int i = thread % 128; i < 64 * kChunks; i += 128) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    const int key = first_key + row;
    if (key < work.key_begin || key >= work.key_end) {
      *reinterpret_cast<uint4*>(stage + chunk / 8 * V::kPanelBytes + row * 128 + chunk % 8 * 16) =
          make_uint4(0, 0, 0, 0);
    }
  }
  fence_async_proxy();
  sync_named(barrier, 128);
}

/// Where the other consumer's tile before one's own is multiplied.
enum class OtherTile {
  kNone,
  kFirst,      ///< ahead of the own tile's scores
  kMeanwhile,  ///< behind them, while the softmax is computed
};

template <class V>
class MlaTiles {
 public:
  __device__ __forceinline__ MlaTiles(unsigned char* smem, MlaBarriers barriers, int consumer)
      : smem_(smem),
        barriers_(barriers),
        own_(consumer),
        other_(1 - consumer),
        shared_(shared_address(smem)) {}

  /// Adds the other's tile `count`, counted from the kernel's start, with this consumer's half of
  /// its values.
  __device__ __forceinline__ void attend_other(std::uint32_t count, StreamSums<V>& sums) const {
    start_other(count, sums);
    wgmma_wait();
    finish_other(sums);
  }

  /// Scores this consumer's own tile `count`, hands its probabilities over and adds its values; and
  /// adds the tile before it, unless kOther says none.
  template <OtherTile kOther>
  __device__ __forceinline__ void attend_own(const Work& work, const MlaRows& rows, int tile,
                                             std::uint32_t count,
                                             const std::uint32_t (&last_panel)[16], float scale,
                                             StreamSums<V>& sums) const {
    const std::uint32_t parity = count / 2 % 2;
    const int first = tile * V::kTileKv;
    // A converting producer has left zeros there.
    if (!V::kConverts && (first < work.key_begin || first + V::kTileKv > work.key_end)) {
#pragma unroll
      for (int piece = 0; piece < 3; ++piece) wait_barrier(barriers_.full(own_, piece), parity);
      zero_unseen_keys<V>(work, first, smem_ + own_ * V::kStageBytes, 1 + own_);
    }
    if constexpr (kOther == OtherTile::kFirst) start_other(count - 1, sums);
    float scores[32];
    multiply_half(scores, own_, parity, 0);
    if constexpr (kOther == OtherTile::kFirst) {
      wgmma_wait_but_newest();
      finish_other(sums);
    }
    multiply_half(scores, other_, parity, 1);
    multiply_rest(scores, last_panel, parity);
    if constexpr (kOther == OtherTile::kMeanwhile) {
      start_other(count - 1, sums);
      wgmma_wait_but_newest();
    } else {
      wgmma_wait();
    }
    pin(scores);
    give_back(barriers_.empty(own_, 2));

    if (scale < 0.0F) {
#pragma unroll
      for (int i = 0; i < 32; ++i) scores[i] = -scores[i];
      scale = -scale;
    }
    // Tiles wholly between these are seen by every row.
    if (first < first_key(work, work.num_tokens - 1) || first + V::kTileKv > end_key(work, 0)) {
      mask_tile(scores, rows.limits, first);
    }
    RowMaxima largest = maxima_of(scores, scale);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      if (!rows.used[r]) largest.of_row[r] = -INFINITY;
    }
    const bool rescales = must_rescale(largest, sums);
    float weight[2] = {1.0F, 1.0F};
    if (rescales) raise_maxima(largest, sums, weight);
    std::uint32_t probabilities[16];
    add_probabilities(scores, scale, sums, probabilities);
    hand_over(probabilities, sums, parity);
    if constexpr (kOther == OtherTile::kMeanwhile) {
      wgmma_wait();
      finish_other(sums);
    }
    if (rescales) rescale_values(sums, weight);
    const std::uint32_t values = values_of(own_);
    pin(probabilities);
    pin(sums.values);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma_wide_values<V::kQ>(sums.values, probabilities + 4 * step,
                               matrix_descriptor(values, step * 16 * 128));
    }
    wgmma_commit();
    wgmma_wait();
    pin(sums.values);
    __syncwarp();
    give_back(barriers_.empty(own_, own_));
  }

  /// Each consumer has summed its own tiles' probabilities; makes of them the sums of all.
  /// `parity`: other in each part.
  __device__ __forceinline__ void add_sums_of_both(std::uint32_t parity,
                                                   StreamSums<V>& sums) const {
    add_row_sums(sums);
    const int row = mla_row();
    if (leads_quad()) {
#pragma unroll
      for (int r = 0; r < 2; ++r) stats(own_).sum[parity][row + 8 * r] = sums.sum[r];
      arrive(barriers_.sums_full(own_));
    }
    wait_barrier(barriers_.sums_full(other_), parity);
    float others[2] = {0.0F, 0.0F};
    if (leads_quad()) {
#pragma unroll
      for (int r = 0; r < 2; ++r) others[r] = stats(other_).sum[parity][row + 8 * r];
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) sums.sum[r] += of_quad(others[r]);
  }

 private:
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) % 128 / 32; }
  static __device__ __forceinline__ void give_back(std::uint32_t empty) {
    if (threadIdx.x % 32 == 0) arrive(empty);
  }
  static __device__ __forceinline__ bool leads_quad() { return threadIdx.x % 4 == 0; }
  static __device__ __forceinline__ float of_quad(float value) {
    return __shfl_sync(0xffffffffU, value, 0, 4);
  }

  __device__ __forceinline__ MlaStats& stats(int consumer) const {
    return reinterpret_cast<MlaStats*>(smem_ + V::kStatsOffset)[consumer];
  }

  /// Descriptor bases of what lies at `offset`. The compiler sees that they are the same in every
  /// lane: `own_` is, and so is where shared memory begins.
  __device__ __forceinline__ std::uint32_t operand(int offset, int leading = 16) const {
    return ((shared_ + static_cast<std::uint32_t>(offset)) & 0x3ffffU) >> 4 |
           static_cast<std::uint32_t>(leading) >> 4 << 16;
  }
  __device__ __forceinline__ std::uint32_t values_of(int stage) const {
    return operand(stage * V::kStageBytes + own_ * V::kHalfBytes, V::kPanelBytes);
  }

  /// Queues the (first) part of the scores that half of the columns make, or adds it.
  __device__ __forceinline__ void multiply_half(float (&scores)[32], int half, std::uint32_t parity,
                                                int add) const {
    wait_barrier(barriers_.full(own_, half), parity);
    const std::uint32_t q = operand(V::kQOffset + half * V::kHalfBytes);
    const std::uint32_t keys = operand(own_ * V::kStageBytes + half * V::kHalfBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4 * V::kHalfPanels; ++step) {
      const int offset = step / 4 * V::kPanelBytes + step % 4 * 32;
      wgmma_keys<V::kQ>(scores, matrix_descriptor(q, offset), matrix_descriptor(keys, offset),
                        add + step > 0 ? 1 : 0);
    }
    wgmma_commit();
  }

  __device__ __forceinline__ void multiply_rest(float (&scores)[32],
                                                const std::uint32_t (&last_panel)[16],
                                                std::uint32_t parity) const {
    wait_barrier(barriers_.full(own_, 2), parity);
    const std::uint32_t keys = operand(own_ * V::kStageBytes + 2 * V::kHalfBytes);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma_keys_of_registers<V::kQ>(scores, last_panel + 4 * step,
                                     matrix_descriptor(keys, step * 32));
    }
    wgmma_commit();
  }

  __device__ __forceinline__ void start_other(std::uint32_t count, StreamSums<V>& sums) const {
    const std::uint32_t parity = count / 2 % 2;
    wait_barrier(barriers_.probabilities_full(other_), parity);
    wait_barrier(barriers_.full(other_, own_), parity);
    raise_to_others(sums);
    const std::uint32_t probabilities = operand(V::kProbabilityOffset + other_ * V::kPanelBytes);
    const std::uint32_t values = values_of(other_);
    pin(sums.values);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      wgmma_wide_values<V::kQ>(sums.values, matrix_descriptor(probabilities, step * 32),
                               matrix_descriptor(values, step * 16 * 128));
    }
    wgmma_commit();
  }

  /// Once the product is complete: gives back what it has read.
  __device__ __forceinline__ void finish_other(StreamSums<V>& sums) const {
    pin(sums.values);
    give_back(barriers_.empty(other_, own_));
    if (leads_quad()) arrive(barriers_.probabilities_empty(other_));
  }

  /// Makes the sums relative to what the other's tile is.
  __device__ __forceinline__ void raise_to_others(StreamSums<V>& sums) const {
    float maximum[2] = {0.0F, 0.0F};
    if (leads_quad()) {
#pragma unroll
      for (int r = 0; r < 2; ++r) maximum[r] = stats(other_).maximum[mla_row() + 8 * r];
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) maximum[r] = of_quad(maximum[r]);
    if (__any_sync(0xffffffffU, maximum[0] != sums.maximum[0] || maximum[1] != sums.maximum[1])) {
      float weight[2];
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        weight[r] = weight_of(sums.maximum[r], maximum[r]);
        sums.sum[r] *= weight[r];
        sums.maximum[r] = maximum[r];
      }
      rescale_values(sums, weight);
    }
  }

  __device__ __forceinline__ void hand_over(const std::uint32_t (&probabilities)[16],
                                            const StreamSums<V>& sums, std::uint32_t parity) const {
    wait_barrier(barriers_.probabilities_empty(own_), parity ^ 1U);
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t row =
        shared_ + static_cast<std::uint32_t>(V::kProbabilityOffset + own_ * V::kPanelBytes +
                                             (warp() * 16 + lane % 16) * 128);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
      const int chunk = (2 * step + lane / 16) ^ (lane % 8);
      store_matrices(row + static_cast<std::uint32_t>(chunk * 16), probabilities + 4 * step);
    }
    if (leads_quad()) {
#pragma unroll
      for (int r = 0; r < 2; ++r) stats(own_).maximum[mla_row() + 8 * r] = sums.maximum[r];
    }
    fence_async_proxy();
    __syncwarp();
    if (leads_quad()) arrive(barriers_.probabilities_full(own_));
  }

  unsigned char* const smem_;
  const MlaBarriers barriers_;
  const int own_;
  const int other_;
  const std::uint32_t shared_;
};

}  // namespace cubist_decode
