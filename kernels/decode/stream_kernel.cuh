#pragma once

#include <cstdint>

#include "model/decode_params.h"
#include "ptx.cuh"
#include "stream_convert.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

/// What every persistent GQA kernel does: one producer warp, a converter warpgroup where a variant
/// has one, and consumers made from (params, smem, barriers, number) that attend to each part of
/// the CTA's range. Consumer<V>::help is called by another warp without work of its own,
/// init_barriers before all by one thread.
template <class V, template <class> class Consumer>
__device__ __forceinline__ void stream_decode(const CubistDecodeParams& params,
                                              unsigned char* smem) {
  using Loaded = typename V::Loaded;
  const StageBarriers<V> barriers = {shared_address(smem + V::kBarrierOffset)};
  const StageBarriers<Loaded> loaded = {shared_address(smem + V::kLoadedBarrierOffset)};
  // Uniform to the compiler, so that what depends on it stays in uniform registers.
  const int warp = __shfl_sync(0xffffffffU, static_cast<int>(threadIdx.x) / 32, 0);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < V::kStages; ++stage) {
      init_barrier(barriers.full(stage), V::kConverters > 0 ? 4 : 1);
      init_barrier(barriers.empty(stage), V::kSharesTile ? 4 * V::kConsumers : 4);
    }
    if constexpr (V::kConverters > 0) {
      for (int stage = 0; stage < Loaded::kStages; ++stage) {
        init_barrier(loaded.full(stage), 1);
        init_barrier(loaded.empty(stage), 4);
      }
    }
    Consumer<V>::init_barriers(smem);
    fence_barrier_init();
    fence_async_proxy();
  }
  __syncthreads();
  release_following_kernel();
  constexpr int kProducer = 4 * (V::kConsumers + V::kConverters);
  if (warp >= kProducer) {
    lower_registers<V::kProducerRegisters>();
    if (warp == kProducer) {
      prefetch_tensor_map(&params.k_map);
      prefetch_tensor_map(&params.v_map);
      if (params.prefetch_kv == 0) wait_for_preceding_kernel();
      TileLoader<Loaded> loader(params, shared_address(smem + V::kLoadedOffset), loaded);
      StreamSchedule schedule(params, V::kTileKv);
      Work work;
      Part part;
      while (schedule.next(work, part)) loader.load(work, part);
    } else if (warp == kProducer + 1) {
      Consumer<V>::help(params, smem);
    }
  } else if (V::kConverters > 0 && warp >= 4 * V::kConsumers) {
    if constexpr (V::kConverters > 0) {
      lower_registers<V::kConverterRegisters>();
      if (params.prefetch_kv == 0) wait_for_preceding_kernel();
      TileConverter<V>(smem, barriers, loaded).convert_range(params);
    }
  } else {
    raise_registers<V::kConsumerRegisters>();
    wait_for_preceding_kernel();
    Consumer<V> consumer(params, smem, barriers, warp / 4);
    consumer.attend_range();
  }
}

}  // namespace cubist_decode
