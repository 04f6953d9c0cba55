// Paged GQA decode attention for sm_90a: TMA, warpgroup MMA, keys dealt out evenly. One kernel a
// compilation: CUBIST_ENTRY names it, CUBIST_TYPE_Q (also that of O, but for e4m3), CUBIST_TYPE_KV,
// CUBIST_HEAD_DIM and CUBIST_TILE_Q shape it (list_variants.cpp lists them all).
// README.md says what it computes and how to launch it.

#include "model/decode_params.h"
#include "ptx.cuh"
#include "stream_ahead.cuh"
#include "stream_attend.cuh"
#include "stream_join.cuh"
#include "stream_kernel.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_variant.h"
#include "stream_work.cuh"

namespace cubist_decode {

using ThisVariant =
    StreamVariant<Type::CUBIST_TYPE_Q, Type::CUBIST_TYPE_KV, CUBIST_HEAD_DIM, CUBIST_TILE_Q>;
static_assert(ThisVariant::kFits, "an SM has too little shared memory for this variant");

/// Each consumer takes every kConsumers-th tile, for all rows, one after the other.
template <class V>
class TileConsumer {
 public:
  __device__ __forceinline__ TileConsumer(const CubistDecodeParams& params, unsigned char* smem,
                                          StageBarriers<V> barriers, int consumer)
      : params_(params),
        smem_(smem),
        barriers_(barriers),
        consumer_(consumer),
        barrier_(1 + consumer),
        q_(smem + V::kQOffset + consumer * V::kPanels * V::kPanelBytes),
        q_base_(descriptor_base(shared_address(q_), 16)) {
    const float scale =
        params.bmm1_scale_log2 != nullptr ? *params.bmm1_scale_log2 : params.scale_softmax_log2;
    negate_ = scale < 0.0F;
    scale_ = fabsf(scale);
    output_scale_ = params.bmm2_scale != nullptr ? *params.bmm2_scale : params.output_scale;
  }

  static __device__ __forceinline__ void init_barriers(unsigned char*) {}
  static __device__ __forceinline__ void help(const CubistDecodeParams&, unsigned char*) {}

  __device__ __forceinline__ void attend_range() {
    StreamSchedule schedule(params_, V::kTileKv);
    Work work;
    Part part;
    while (schedule.next(work, part)) attend_part(work, part);
  }

 private:
  __device__ __forceinline__ void attend_part(const Work& work, const Part& part) {
    const ConsumerRows rows = rows_of_consumer<V>(work, consumer_);
    // A warp without rows takes part in what the warpgroup does together and skips the rest.
    const bool has_rows = static_cast<int>(threadIdx.x) % 128 / 32 * 16 < rows.count;
    stage_rows<V>(params_, work, rows, negate_, q_, nullptr, barrier_);
    StreamSums<V> sums;
    sums.clear();
    attend_tiles(work, limits_of(work, rows), has_rows, sums);
    add_row_sums(sums);
    auto* scratch = reinterpret_cast<float*>(smem_ + V::kScratchOffset);
    if (!join_consumers(sums, consumer_, has_rows, scratch)) return;
    auto* last = reinterpret_cast<int*>(smem_ + V::kLastOffset);
    if (!part.is_whole && !join_groups(params_, part, sums, 0, has_rows, barrier_, last)) {
      return;
    }
    if (has_rows) write_rows(params_, work, rows, sums, output_scale_);
  }

  __device__ __forceinline__ void attend_tiles(const Work& work, const RowLimits& limits,
                                               bool has_rows, StreamSums<V>& sums) {
    // Tiles wholly between these are seen by every row.
    const int seen_from = first_key(work, work.num_tokens - 1);
    const int seen_to = end_key(work, 0);
    for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
      const bool mine = owner_ == consumer_;
      owner_ = owner_ + 1 == V::kConsumers ? 0 : owner_ + 1;
      if (mine) attend_tile(work, limits, has_rows, tile, seen_from, seen_to, sums);
      cursor_.advance();
    }
  }

  __device__ __forceinline__ void attend_tile(const Work& work, const RowLimits& limits,
                                              bool has_rows, int tile, int seen_from, int seen_to,
                                              StreamSums<V>& sums) {
    unsigned char* stage = smem_ + cursor_.stage * V::kStageBytes;
    const TileOperands operands = operands_of<V>(shared_address(stage));
    const int first = tile * V::kTileKv;
    wait_barrier(barriers_.full(cursor_.stage), cursor_.parity);
    if (first < work.key_begin || first + V::kTileKv > work.key_end) {
      zero_unseen_values<V>(work, first, stage + V::kKvTileBytes,
                            static_cast<int>(threadIdx.x) % 128, 128, barrier_);
    }
    float scores[32];
    multiply_tile_keys<V>(scores, q_base_, operands.k);
    std::uint32_t probabilities[16];
    if (has_rows) {
      if (first < seen_from || first + V::kTileKv > seen_to) mask_tile(scores, limits, first);
      update_stream_softmax(scores, scale_, sums, probabilities);
    } else {
#pragma unroll
      for (int i = 0; i < 16; ++i) probabilities[i] = 0;
    }
    multiply_tile_values(sums, probabilities, operands.v);
    if (threadIdx.x % 32 == 0) arrive(barriers_.empty(cursor_.stage));
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
  StageCursor<V::kStages> cursor_;
  int owner_ = 0;  // the consumer whose turn the next tile is
};

template <class V>
using Consumer = std::conditional_t<V::kRunsAhead, AheadConsumer<V>, TileConsumer<V>>;

}  // namespace cubist_decode

extern "C" __global__ void __launch_bounds__(cubist_decode::ThisVariant::kThreads, 1)
    CUBIST_ENTRY(const __grid_constant__ CubistDecodeParams params) {
  extern __shared__ __align__(1024) unsigned char smem[];
  cubist_decode::stream_decode<cubist_decode::ThisVariant, cubist_decode::Consumer>(params, smem);
}
