// Paged MLA decode attention for sm_90a with one copy of the cache: keys of 576 elements, the first
// 512 of which are the values. One kernel a compilation: CUBIST_ENTRY names it, CUBIST_TYPE_Q (also
// that of O) and CUBIST_TYPE_KV shape it (list_variants.cpp lists them all).
// README.md says what it computes and how to launch it.

#include "mla_attend.cuh"
#include "mla_convert.cuh"
#include "mla_join.cuh"
#include "mla_load.cuh"
#include "mla_variant.h"
#include "model/decode_params.h"
#include "ptx.cuh"
#include "stream_join.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

using ThisVariant = MlaVariant<Type::CUBIST_TYPE_Q, Type::CUBIST_TYPE_KV>;
static_assert(ThisVariant::kFits, "an SM has too little shared memory for this variant");

template <class V>
class MlaConsumer {
 public:
  __device__ __forceinline__ MlaConsumer(const CubistDecodeParams& params, unsigned char* smem,
                                         MlaBarriers barriers, int consumer)
      : params_(params),
        smem_(smem),
        barriers_(barriers),
        consumer_(consumer),
        tiles_(smem, barriers, consumer) {}

  /// Once the preceding kernel's writes are visible.
  __device__ __forceinline__ void read_scales() {
    scale_ =
        params_.bmm1_scale_log2 != nullptr ? *params_.bmm1_scale_log2 : params_.scale_softmax_log2;
    output_scale_ = params_.bmm2_scale != nullptr ? *params_.bmm2_scale : params_.output_scale;
  }

  __device__ __forceinline__ void attend_part(const Work& work, const Part& part) {
    StreamSums<V> sums;
    sums.clear();
    attend_tiles(work, sums);
    tiles_.add_sums_of_both(sums_parity_, sums);
    sums_parity_ ^= 1U;
    const ConsumerRows rows = {0, work.num_tokens * work.rows_per_token};
    const bool has_rows = static_cast<int>(threadIdx.x) % 128 / 32 * 16 < rows.count;
    if (!part.is_whole) {
      auto* told =
          reinterpret_cast<int*>(smem_ + V::kBarrierOffset + 8 * V::kBarriers) + 2 * consumer_;
      const MlaJoin<V> join(params_, work, part, rows, consumer_, told);
      join.share(sums, has_rows);
      join.help(output_scale_, has_rows);
    } else if (has_rows) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        write_columns<V, V::kHeadDim / 8>(params_, work, rows, r, {sums.maximum[r], sums.sum[r]},
                                          sums.values, output_scale_, consumer_ * V::kHeadDim);
      }
    }
  }

 private:
  __device__ __forceinline__ void attend_tiles(const Work& work, StreamSums<V>& sums) {
    std::uint32_t last_panel[16];
    load_last_panel<V>(params_, work, last_panel);
    wait_barrier(barriers_.q_full(), q_parity_);
    q_parity_ ^= 1U;
    const MlaRows rows = rows_of(work);
    const std::uint32_t begin = count_;
    count_ += static_cast<std::uint32_t>(work.tile_end - work.tile_begin);
    const auto consumer = static_cast<std::uint32_t>(consumer_);
    std::uint32_t at = begin + ((begin ^ consumer) & 1U);
    const int tile_of = work.tile_begin - static_cast<int>(begin);
    if (at == begin && at < count_) {
      tiles_.template attend_own<OtherTile::kNone>(work, rows, tile_of + static_cast<int>(at), at,
                                                   last_panel, scale_, sums);
      at += 2;
    }
    // Consumer 0 takes the other's tile off its hands ahead of its own, consumer 1 while it
    // computes its softmax: one leads and one follows, so that a stage is free while the other is
    // read.
    for (; at < count_; at += 2) {
      const int tile = tile_of + static_cast<int>(at);
      if (consumer_ == 0) {
        tiles_.template attend_own<OtherTile::kFirst>(work, rows, tile, at, last_panel, scale_,
                                                      sums);
      } else {
        tiles_.template attend_own<OtherTile::kMeanwhile>(work, rows, tile, at, last_panel, scale_,
                                                          sums);
      }
    }
    if (count_ > begin && ((count_ - 1) & 1U) != consumer) tiles_.attend_other(count_ - 1, sums);
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barriers_.q_empty());
  }

  static __device__ __forceinline__ MlaRows rows_of(const Work& work) {
    MlaRows rows;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int index = mla_row() + 8 * r;
      const Row row = row_of(work, index);
      rows.limits.first_key[r] = first_key(work, row.token);
      rows.limits.end_key[r] = end_key(work, row.token);
      rows.used[r] = index < work.num_tokens * work.rows_per_token && row.valid;
    }
    return rows;
  }

  const CubistDecodeParams& params_;
  unsigned char* const smem_;
  const MlaBarriers barriers_;
  const int consumer_;
  const MlaTiles<V> tiles_;
  float scale_;
  float output_scale_;
  std::uint32_t q_parity_ = 0;
  std::uint32_t sums_parity_ = 0;
  std::uint32_t count_ = 0;  // tiles so far
};

template <class V>
__device__ __forceinline__ void init_mla_barriers(MlaBarriers barriers) {
  for (int stage = 0; stage < V::kStages; ++stage) {
    for (int piece = 0; piece < 3; ++piece) {
      init_barrier(barriers.full(stage, piece), V::kConverts ? 4 : 1);
      init_barrier(barriers.empty(stage, piece), 4);
    }
    init_barrier(barriers.probabilities_full(stage), 32);
    init_barrier(barriers.probabilities_empty(stage), 32);
  }
  for (int consumer = 0; consumer < V::kConsumers; ++consumer) {
    init_barrier(barriers.sums_full(consumer), 32);
  }
  init_barrier(barriers.q_full(), 1);
  init_barrier(barriers.q_empty(), 4 * V::kConsumers);
  fence_barrier_init();
  fence_async_proxy();
}

/// Producer warps 0 to 2: a piece of every tile each; 3: Q. Where they convert, all share the
/// pieces.
template <class V>
__device__ __forceinline__ void produce(const CubistDecodeParams& params, unsigned char* smem,
                                        MlaBarriers barriers, int warp) {
  StreamSchedule schedule(params, V::kTileKv);
  Work work;
  Part part;
  MlaQueryLoader<V> query_loader(params, shared_address(smem + V::kQOffset), barriers);
  if constexpr (V::kConverts) {
    MlaConvertingLoader<V> loader(params, smem, barriers);
    while (schedule.next(work, part)) {
      if (warp == 3) {
        wait_for_preceding_kernel();
        query_loader.load(work);
      }
      loader.load(work, part);
    }
    return;
  }
  if (warp == 3) {
    prefetch_tensor_map(&params.q_map);
    while (schedule.next(work, part)) {
      wait_for_preceding_kernel();
      query_loader.load(work);
    }
    return;
  }
  prefetch_tensor_map(&params.k_map);
  MlaTileLoader<V> loader(params, shared_address(smem), barriers, warp);
  while (schedule.next(work, part)) loader.load(work, part);
}

template <class V>
__device__ __forceinline__ void mla_decode(const CubistDecodeParams& params, unsigned char* smem) {
  const MlaBarriers barriers = {shared_address(smem + V::kBarrierOffset)};
  // Uniform to the compiler, so that what depends on it stays in uniform registers.
  const int warp = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32, 0);
  if (threadIdx.x == 0) init_mla_barriers<V>(barriers);
  __syncthreads();
  release_following_kernel();
  // Where lengths may be read ahead, so that the schedule is ready when the preceding kernel ends.
  if (params.prefetch_kv == 0) wait_for_preceding_kernel();
  if (warp >= 4 * V::kConsumers) {
    lower_registers<V::kProducerRegisters>();
    produce<V>(params, smem, barriers, warp - 4 * V::kConsumers);
  } else {
    raise_registers<V::kConsumerRegisters>();
    MlaConsumer<V> consumer(params, smem, barriers, warp / 4);
    StreamSchedule schedule(params, V::kTileKv);
    Work work;
    Part part;
    bool more = schedule.next(work, part);
    wait_for_preceding_kernel();
    consumer.read_scales();
    for (; more; more = schedule.next(work, part)) consumer.attend_part(work, part);
  }
}

}  // namespace cubist_decode

extern "C" __global__ void __launch_bounds__(cubist_decode::ThisVariant::kThreads, 1)
    CUBIST_ENTRY(const __grid_constant__ CubistDecodeParams params) {
  extern __shared__ __align__(1024) unsigned char smem[];
  cubist_decode::mla_decode<cubist_decode::ThisVariant>(params, smem);
}
