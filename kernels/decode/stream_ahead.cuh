#pragma once

#include <cstdint>

#include "ptx.cuh"
#include "stream_attend.cuh"
#include "stream_join.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_task.cuh"

namespace cubist_decode {

/// What a row's scores are multiplied by, and what is then taken from them; of each of the thread's
/// two rows.
struct RowReference {
  float scale[2];
  float maximum[2];
};

/// The same in every lane, and known to be: what follows from it lives in uniform registers.
__device__ __forceinline__ int uniform(int value) { return __shfl_sync(0xffffffffU, value, 0); }

/// A consumer's rows of Q, as A operand of the scores: in shared memory or in registers, as the
/// variant says.
template <class V>
struct HeldRows {
  static constexpr int kSteps = V::kHoldsRows ? V::kHeadDim / 16 : 1;
  std::uint32_t base;  ///< descriptor base
  std::uint32_t fragments[kSteps][4];

  __device__ __forceinline__ void load(const unsigned char* q) {
    if constexpr (V::kHoldsRows) {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const int row = static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane % 16;
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int chunk = (step % 4 * 2 + lane / 16) ^ row % 8;
        load_matrices(fragments[step],
                      shared_address(q) + static_cast<std::uint32_t>(step / 4 * V::kPanelBytes +
                                                                     row * 128 + chunk * 16));
      }
#pragma unroll
      for (int step = 0; step < kSteps; ++step) pin(fragments[step]);
    }
  }
};

/// Issues a tile's scores, c = rows of Q times keys. `tile`: descriptor base of its keys.
template <class V>
__device__ __forceinline__ void begin_tile_keys(float (&scores)[32], const HeldRows<V>& q,
                                                std::uint32_t tile) {
#pragma unroll
  for (int step = 0; step < V::kHeadDim / 16; ++step) {
    const int offset = step / 4 * V::kPanelBytes + step % 4 * 32;
    const std::uint64_t keys = matrix_descriptor(tile, offset);
    const int add = step > 0 ? 1 : 0;
    if constexpr (V::kHoldsRows) {
      wgmma_keys_of_rows<V::kMma>(scores, q.fragments[step], keys, add);
    } else {
      wgmma_keys<V::kMma>(scores, matrix_descriptor(q.base, offset), keys, add);
    }
  }
  wgmma_commit();
}

/// Issues sums += probabilities times a tile's values. `tile`: descriptor base of its keys.
template <class V>
__device__ __forceinline__ void begin_tile_values(StreamSums<V>& sums,
                                                  std::uint32_t (&probabilities)[16],
                                                  std::uint32_t tile) {
  // Panels lie apart where columns lie along K.
  constexpr std::uint32_t kPanelsApart = (V::kPanelBytes - 16) / 16;
  const std::uint32_t v = tile + (kPanelsApart << 16);
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    wgmma_values<V::kMma>(sums.values, probabilities + 4 * step,
                          matrix_descriptor(v, V::kKvTileBytes + step * 16 * 128));
  }
  wgmma_commit();
}

/// Probabilities of a tile from its scores, as A operand; `sum`: of the thread's of each row.
template <class V>
__device__ __forceinline__ void make_probabilities(const float (&scores)[32],
                                                   const RowReference& reference, float (&sum)[2],
                                                   std::uint32_t (&probabilities)[16]) {
  sum[0] = sum[1] = 0.0F;
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const int r = i % 2;
    const float low = exp2_approx(fmaf(scores[2 * i], reference.scale[r], -reference.maximum[r]));
    const float high =
        exp2_approx(fmaf(scores[2 * i + 1], reference.scale[r], -reference.maximum[r]));
    sum[r] += low + high;
    probabilities[i] = pack<V::kMma>(low, high);
  }
}

/// A consumer that queues a tile's scores, and behind them the values of the tile before: while
/// those are multiplied, it makes the tile's probabilities. They are taken relative to the maximum
/// that was raised last; only where one turns out too large is it raised again.
///
/// Most tiles are seen by every row and raise no maximum. The loop over those is kept free of all
/// else: jumps over what is seldom executed cost a tenth of the time (docs/results/h200-decode.md).
/// Every warp of the warpgroup queues the same for a tile, whichever way it takes.
template <class V>
class AheadConsumer {
 public:
  __device__ __forceinline__ AheadConsumer(const CubistDecodeParams& params, unsigned char* smem,
                                           StageBarriers<V> barriers, int consumer)
      : params_(params),
        smem_(smem),
        barriers_(barriers),
        consumer_(consumer),
        barrier_(1 + consumer),
        q_(smem + V::kQOffset + consumer * V::kPanels * V::kPanelBytes),
        q_base_(descriptor_base(shared_address(q_), 16)),
        next_(V::kSharesTile ? 0 : consumer) {
    cursor_.stage = next_;
    const float scale =
        params.bmm1_scale_log2 != nullptr ? *params.bmm1_scale_log2 : params.scale_softmax_log2;
    negate_ = scale < 0.0F;
    scale_ = fabsf(scale);
    output_scale_ = params.bmm2_scale != nullptr ? *params.bmm2_scale : params.output_scale;
  }

  static __device__ __forceinline__ void init_barriers(unsigned char* smem) {
    init_task_barriers<V>(smem);
  }
  static __device__ __forceinline__ void help(const CubistDecodeParams& params,
                                              unsigned char* smem) {
    find_tasks<V>(params, smem);
  }

  __device__ __forceinline__ void attend_range() {
    attend_tasks<V>(smem_, [&](const Work& work, const Part& part) { attend_part(work, part); });
  }

 private:
  static constexpr int kStep = V::kSharesTile ? 1 : V::kConsumers;
  using Cursor = StageCursor<V::kStages, kStep>;
  // Sums of a thread's probabilities, relative to an old maximum, may come near it: so far is each
  // of them inside the range of either 16-bit type.
  static constexpr float kTooLarge = 256.0F;

  __device__ __forceinline__ void attend_part(const Work& work, const Part& part) {
    const ConsumerRows rows = rows_of_consumer<V>(work, consumer_);
    // A warp without rows takes part in what the warpgroup does together and skips the rest.
    const int first_row = static_cast<int>(threadIdx.x) % 128 / 32 * 16;
    const bool has_rows = uniform(first_row < rows.count ? 1 : 0) != 0;
    auto* row_scales = reinterpret_cast<float*>(smem_ + V::kRowScaleOffset) + consumer_ * 64;
    stage_rows<V>(params_, work, rows, negate_, q_, row_scales, barrier_);
    float scale[2] = {scale_, scale_};
    if constexpr (V::kConvertsKv) {
      row_scales += first_row + static_cast<int>(threadIdx.x) % 32 / 4;
      scale[0] *= row_scales[0];
      scale[1] *= row_scales[8];
    }
    StreamSums<V> sums;
    sums.clear();
    attend_tiles(work, rows, has_rows, scale, sums);
    add_row_sums(sums);
    if constexpr (!V::kSharesTile) {
      auto* scratch = reinterpret_cast<float*>(smem_ + V::kScratchOffset);
      if (!join_consumers(sums, consumer_, has_rows, scratch)) return;
    }
    const int half = V::kSharesTile ? consumer_ : 0;
    auto* last = reinterpret_cast<int*>(smem_ + V::kLastOffset) + half;
    if (!part.is_whole && !join_groups(params_, part, sums, half, has_rows, barrier_, last)) {
      return;
    }
    if (has_rows) write_rows(params_, work, rows, sums, output_scale_);
  }

  __device__ __forceinline__ void attend_tiles(const Work& work, ConsumerRows rows, bool has_rows,
                                               const float (&scale)[2], StreamSums<V>& sums) {
    // Tiles wholly between these are seen by every row.
    const int seen_from = uniform(first_key(work, work.num_tokens - 1));
    const int seen_to = uniform(end_key(work, 0));
    const int tile_end = uniform(work.tile_end);
    int tile = uniform(work.tile_begin + next_);
    if (tile >= tile_end) {
      next_ = tile - tile_end;
      return;
    }
    HeldRows<V> q;
    q.base = q_base_;
    q.load(q_);
    // In the loop below a warp without rows has probabilities of 0.
    const float none = has_rows ? 0.0F : INFINITY;
    RowReference reference = {{scale[0], scale[1]}, {none, none}};
    float scores[32];
    std::uint32_t probabilities[16];
    std::uint32_t operands = await_tile();
    zero_unseen(work, tile);
    wgmma_fence();
    begin_tile_keys(scores, q, operands);
    wgmma_wait();
    pin(scores);
    for (;;) {
      // Nothing is queued, the tile's scores are there, and what was before it is summed.
      if (has_rows) {
        const int first = tile * V::kTileKv;
        if (first < seen_from || first + V::kTileKv > seen_to) {
          mask_tile(scores, limits_of(work, rows), first);
        }
        raise_to(scores, reference, sums);
        float sum[2];
        make_probabilities<V>(scores, reference, sum, probabilities);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          sums.sum[r] += sum[r];
          // -inf where the row has seen no key yet: the first that it sees is too large then.
          reference.maximum[r] = sums.maximum[r];
        }
      } else {
#pragma unroll
        for (int i = 0; i < 16; ++i) probabilities[i] = 0;
      }
      tile += kStep;
      const int plain_end =
          tile * V::kTileKv >= seen_from ? min(tile_end, seen_to / V::kTileKv) : tile;
      bool is_too_large = false;
      std::uint32_t held_barrier = 0;
#pragma unroll 1
      for (; tile < plain_end; tile += kStep) {
        const std::uint32_t held = operands;
        held_barrier = barriers_.empty(cursor_.stage);
        cursor_.advance();
        operands = await_tile();
        pin(probabilities);
        pin(sums.values);
        wgmma_fence();
        begin_tile_keys(scores, q, operands);
        begin_tile_values(sums, probabilities, held);
        wgmma_wait_but_newest();
        pin(scores);
        std::uint32_t fresh[16];
        float sum[2];
        make_probabilities<V>(scores, reference, sum, fresh);
        // Not "at least", so that NaN counts too. Leaving here also keeps the compiler from waiting
        // for the values before it makes probabilities.
        is_too_large = !__all_sync(0xffffffffU, sum[0] < kTooLarge && sum[1] < kTooLarge);
        if (is_too_large) break;
        finish_values(sums, held_barrier);
        sums.sum[0] += sum[0];
        sums.sum[1] += sum[1];
#pragma unroll
        for (int i = 0; i < 16; ++i) probabilities[i] = fresh[i];
      }
      if (is_too_large) {
        finish_values(sums, held_barrier);
        continue;
      }
      if (tile >= tile_end) break;
      const std::uint32_t held = operands;
      held_barrier = barriers_.empty(cursor_.stage);
      cursor_.advance();
      operands = await_tile();
      zero_unseen(work, tile);
      pin(probabilities);
      pin(sums.values);
      wgmma_fence();
      begin_tile_keys(scores, q, operands);
      begin_tile_values(sums, probabilities, held);
      finish_values(sums, held_barrier);
      pin(scores);
    }
    pin(probabilities);
    pin(sums.values);
    wgmma_fence();
    begin_tile_values(sums, probabilities, operands);
    finish_values(sums, barriers_.empty(cursor_.stage));
    cursor_.advance();
    next_ = tile - tile_end;
  }

  /// Waits for all that is queued; the stage whose values it was is free then.
  __device__ __forceinline__ void finish_values(StreamSums<V>& sums,
                                                std::uint32_t empty_barrier) const {
    wgmma_wait();
    pin(sums.values);
    if (threadIdx.x % 32 == 0) arrive(empty_barrier);
  }

  /// Makes the rows' maxima at least the scores' own, and what was summed relative to them.
  static __device__ __forceinline__ void raise_to(const float (&scores)[32],
                                                  RowReference& reference, StreamSums<V>& sums) {
    const RowMaxima unscaled = maxima_of(scores, 1.0F);
    const RowMaxima largest = {
        {unscaled.of_row[0] * reference.scale[0], unscaled.of_row[1] * reference.scale[1]}};
    float weight[2];
    raise_maxima(largest, sums, weight);
    rescale_values(sums, weight);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      reference.maximum[r] = sums.maximum[r] == -INFINITY ? 0.0F : sums.maximum[r];
    }
  }

  /// Waits for the tile of the cursor's stage; descriptor base of its keys.
  __device__ __forceinline__ std::uint32_t await_tile() const {
    wait_barrier(barriers_.full(cursor_.stage), cursor_.parity);
    return descriptor_base(shared_address(smem_ + cursor_.stage * V::kStageBytes), 16);
  }

  __device__ __forceinline__ void zero_unseen(const Work& work, int tile) const {
    const int first = tile * V::kTileKv;
    if (first < work.key_begin || first + V::kTileKv > work.key_end) {
      constexpr int kThreads = V::kSharesTile ? 256 : 128;
      zero_unseen_values<V>(work, first, smem_ + cursor_.stage * V::kStageBytes + V::kKvTileBytes,
                            static_cast<int>(threadIdx.x) % kThreads, kThreads,
                            V::kSharesTile ? 4 : barrier_);
    }
  }

  const CubistDecodeParams& params_;
  unsigned char* const smem_;
  const StageBarriers<V> barriers_;
  const int consumer_;
  const int barrier_;
  unsigned char* const q_;
  const std::uint32_t q_base_;
  float scale_;
  float output_scale_;
  bool negate_;
  Cursor cursor_;
  int next_;  // which of the next part's tiles is this consumer's first
};

}  // namespace cubist_decode
