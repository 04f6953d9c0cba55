// Paged MLA decode attention for sm_90a with one copy of the cache: keys of 576 elements, the first
// 512 of which are the values. One kernel a compilation: CUBIST_ENTRY names it, CUBIST_TYPE_Q (also
// that of the cache and O) shapes it (list_variants.cpp lists them all).
// README.md says what it computes and how to launch it.

#include "mla_attend.cuh"
#include "mla_join.cuh"
#include "mla_load.cuh"
#include "mla_variant.h"
#include "model/decode_params.h"
#include "ptx.cuh"
#include "stream_join.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

using ThisVariant = MlaVariant<Type::CUBIST_TYPE_Q>;
static_assert(ThisVariant::kFits, "an SM has too little shared memory for this variant");

inline constexpr int kSumsReady = 3;  // named barriers of both consumers; 1 and 2: one a consumer
inline constexpr int kSumsRead = 4;

template <class V>
class MlaConsumer {
 public:
  __device__ __forceinline__ MlaConsumer(const CubistDecodeParams& params, unsigned char* smem,
                                         MlaBarriers barriers, int consumer)
      : params_(params),
        smem_(smem),
        barriers_(barriers),
        consumer_(consumer),
        tiles_(smem, barriers, consumer) {
    scale_ =
        params.bmm1_scale_log2 != nullptr ? *params.bmm1_scale_log2 : params.scale_softmax_log2;
    output_scale_ = params.bmm2_scale != nullptr ? *params.bmm2_scale : params.output_scale;
  }

  __device__ __forceinline__ void attend_part(const Work& work, const Part& part) {
    StreamSums<V> sums;
    sums.clear();
    attend_tiles(work, sums);
    add_sums_of_both(sums);
    const ConsumerRows rows = {0, work.num_tokens * work.rows_per_token};
    const bool has_rows = static_cast<int>(threadIdx.x) % 128 / 32 * 16 < rows.count;
    if (!part.is_whole) {
      auto* told = reinterpret_cast<int*>(smem_ + V::kBarrierOffset + 8 * V::kBarriers) + consumer_;
      const MlaJoin<V> join(params_, work, part, rows, consumer_, told);
      join.share(sums, has_rows);
      join.help(output_scale_, has_rows);
    } else if (has_rows) {
      write_rows(params_, work, rows, sums, output_scale_, consumer_ * V::kHeadDim);
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
      tiles_.template attend_own<false>(work, rows, tile_of + static_cast<int>(at), at, last_panel,
                                        scale_, sums);
      at += 2;
    }
    // Consumer 0 takes the other's tile off its hands before its own, consumer 1 while it waits for
    // its scores: one leads and one follows, so that a stage is free while the other is read.
    for (; at < count_; at += 2) {
      const int tile = tile_of + static_cast<int>(at);
      if (consumer_ == 0) {
        tiles_.start_other(at - 1, sums);
        tiles_.finish_other(sums);
        tiles_.template attend_own<false>(work, rows, tile, at, last_panel, scale_, sums);
      } else {
        tiles_.template attend_own<true>(work, rows, tile, at, last_panel, scale_, sums);
      }
    }
    if (count_ > begin && ((count_ - 1) & 1U) != consumer) {
      tiles_.start_other(count_ - 1, sums);
      tiles_.finish_other(sums);
    }
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

  /// Each consumer has summed its own tiles' probabilities; both need all.
  __device__ __forceinline__ void add_sums_of_both(StreamSums<V>& sums) const {
    add_row_sums(sums);
    if (threadIdx.x % 4 == 0) {
#pragma unroll
      for (int r = 0; r < 2; ++r) tiles_.stats(consumer_).sum[mla_row() + 8 * r] = sums.sum[r];
    }
    sync_named(kSumsReady, 256);
#pragma unroll
    for (int r = 0; r < 2; ++r) sums.sum[r] += tiles_.stats(1 - consumer_).sum[mla_row() + 8 * r];
    sync_named(kSumsRead, 256);
  }

  const CubistDecodeParams& params_;
  unsigned char* const smem_;
  const MlaBarriers barriers_;
  const int consumer_;
  const MlaTiles<V> tiles_;
  float scale_;
  float output_scale_;
  std::uint32_t q_parity_ = 0;
  std::uint32_t count_ = 0;  // tiles so far
};

template <class V>
__device__ __forceinline__ void init_mla_barriers(MlaBarriers barriers) {
  for (int stage = 0; stage < V::kStages; ++stage) {
    for (int piece = 0; piece < 3; ++piece) {
      init_barrier(barriers.full(stage, piece), 1);
      init_barrier(barriers.empty(stage, piece), 4);
    }
    init_barrier(barriers.probabilities_full(stage), 32);
    init_barrier(barriers.probabilities_empty(stage), 32);
  }
  init_barrier(barriers.q_full(), 1);
  init_barrier(barriers.q_empty(), 4 * V::kConsumers);
  fence_barrier_init();
  fence_async_proxy();
}

/// Producer warps 0 to 2: a piece of every tile each; 3: Q.
template <class V>
__device__ __forceinline__ void produce(const CubistDecodeParams& params, unsigned char* smem,
                                        MlaBarriers barriers, int warp) {
  StreamSchedule schedule(params, V::kTileKv);
  Work work;
  Part part;
  if (warp == 3) {
    prefetch_tensor_map(&params.q_map);
    wait_for_preceding_kernel();
    MlaQueryLoader<V> loader(params, shared_address(smem + V::kQOffset), barriers);
    while (schedule.next(work, part)) loader.load(work);
    return;
  }
  prefetch_tensor_map(&params.k_map);
  if (params.prefetch_kv == 0) wait_for_preceding_kernel();
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
  if (warp >= 4 * V::kConsumers) {
    lower_registers<V::kProducerRegisters>();
    produce<V>(params, smem, barriers, warp - 4 * V::kConsumers);
  } else {
    raise_registers<V::kConsumerRegisters>();
    wait_for_preceding_kernel();
    MlaConsumer<V> consumer(params, smem, barriers, warp / 4);
    StreamSchedule schedule(params, V::kTileKv);
    Work work;
    Part part;
    while (schedule.next(work, part)) consumer.attend_part(work, part);
  }
}

}  // namespace cubist_decode

extern "C" __global__ void __launch_bounds__(cubist_decode::ThisVariant::kThreads, 1)
    CUBIST_ENTRY(const __grid_constant__ CubistDecodeParams params) {
  extern __shared__ __align__(1024) unsigned char smem[];
  cubist_decode::mla_decode<cubist_decode::ThisVariant>(params, smem);
}
