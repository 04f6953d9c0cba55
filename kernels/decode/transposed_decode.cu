// Paged GQA decode attention for sm_90a where few rows meet many keys: as stream_decode.cu, with
// the keys as the rows of the MMA and the (token, head) rows as its columns. One kernel a
// compilation: CUBIST_ENTRY names it, CUBIST_TYPE_Q (also that of O, but for e4m3), CUBIST_TYPE_KV,
// CUBIST_HEAD_DIM and CUBIST_TILE_Q shape it (list_variants.cpp lists them all). README.md says
// what it computes and how to launch it.

#include "model/decode_params.h"
#include "stream_attend.cuh"
#include "stream_kernel.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_task.cuh"
#include "stream_work.cuh"
#include "transposed_attend.cuh"
#include "transposed_join.cuh"
#include "transposed_variant.h"

namespace cubist_decode {

using ThisVariant =
    TransposedVariant<Type::CUBIST_TYPE_Q, Type::CUBIST_TYPE_KV, CUBIST_HEAD_DIM, CUBIST_TILE_Q>;
static_assert(ThisVariant::kFits, "an SM has too little shared memory for this variant");

template <class V>
class TransposedConsumer {
 public:
  __device__ __forceinline__ TransposedConsumer(const CubistDecodeParams& params,
                                                unsigned char* smem, StageBarriers<V> barriers,
                                                int consumer)
      : params_(params),
        smem_(smem),
        barriers_(barriers),
        barrier_(1 + consumer),
        negate_(scale_of(params) < 0.0F),
        attention_(smem, consumer, barrier_, fabsf(scale_of(params))),
        next_(consumer) {
    cursor_.stage = consumer;
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
  __device__ __forceinline__ void attend_part(const Work& work, const Part& part) {
    sync_named(kScratchFree, 128 * V::kConsumers);  // nobody is at the part before any more
    stage_columns(params_, work, negate_, attention_.memory());
    sync_named(kScratchReady, 128 * V::kConsumers);
    attention_.begin_part();
    TransposedSums<V> sums;
    sums.clear();
    attend_tiles(work, sums);
    ColumnStats<V> stats;
    if (!join_transposed(sums, stats, attention_.memory())) return;
    auto* last = reinterpret_cast<int*>(smem_ + V::kBarrierOffset + 16 * V::kStages);
    if (!part.is_whole && !join_transposed_groups(params_, part, sums, stats, barrier_, last)) {
      return;
    }
    const float output_scale =
        params_.bmm2_scale != nullptr ? *params_.bmm2_scale : params_.output_scale;
    write_columns(params_, work, sums, stats, output_scale);
  }

  static __device__ __forceinline__ float scale_of(const CubistDecodeParams& params) {
    return params.bmm1_scale_log2 != nullptr ? *params.bmm1_scale_log2 : params.scale_softmax_log2;
  }

  __device__ __forceinline__ void attend_tiles(const Work& work, TransposedSums<V>& sums) {
    // Tiles wholly between these are seen by every row.
    const int seen_from = first_key(work, work.num_tokens - 1);
    const int seen_to = end_key(work, 0);
    const int key_begin = work.key_begin;
    const int key_end = work.key_end;
    const int tile_end = work.tile_end;
    int tile = work.tile_begin + next_;
    for (; tile < tile_end; tile += V::kConsumers) {
      unsigned char* stage = smem_ + cursor_.stage * V::kStageBytes;
      const int first = tile * V::kTileKv;
      wait_barrier(barriers_.full(cursor_.stage), cursor_.parity);
      if (first < key_begin || first + V::kTileKv > key_end) {
        zero_unseen_values<V>(work, first, stage + V::kKvTileBytes,
                              static_cast<int>(threadIdx.x) % 128, 128, barrier_);
      }
      attention_.attend(work, shared_address(stage), first,
                        first >= seen_from && first + V::kTileKv <= seen_to, sums, [&] {
                          if (threadIdx.x % 32 == 0) arrive(barriers_.empty(cursor_.stage));
                        });
      cursor_.advance();
    }
    next_ = tile - tile_end;
  }

  const CubistDecodeParams& params_;
  unsigned char* const smem_;
  const StageBarriers<V> barriers_;
  const int barrier_;
  const bool negate_;
  TransposedAttention<V> attention_;
  StageCursor<V::kStages, V::kConsumers> cursor_;
  int next_;  // which of the next part's tiles is this consumer's first
};

}  // namespace cubist_decode

extern "C" __global__ void __launch_bounds__(cubist_decode::ThisVariant::kThreads, 1)
    CUBIST_ENTRY(const __grid_constant__ CubistDecodeParams params) {
  extern __shared__ __align__(1024) unsigned char smem[];
  cubist_decode::stream_decode<cubist_decode::ThisVariant, cubist_decode::TransposedConsumer>(
      params, smem);
}
