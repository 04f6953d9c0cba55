// Paged GQA decode attention. One kernel a compilation: CUBIST_ENTRY names it, CUBIST_TYPE_Q,
// CUBIST_TYPE_KV, CUBIST_HEAD_DIM, CUBIST_TILE_Q and CUBIST_SMEM_LIMIT shape it (list_variants.cpp
// lists them all).
// README.md says what it computes and how to launch it.

#include "attend.cuh"
#include "join.cuh"
#include "kv_pipeline.cuh"
#include "model/decode_params.h"
#include "ptx.cuh"
#include "query.cuh"
#include "variant.h"
#include "work.cuh"

namespace cubist_decode {

using ThisVariant = Variant<Type::CUBIST_TYPE_Q, Type::CUBIST_TYPE_KV, CUBIST_HEAD_DIM,
                            CUBIST_TILE_Q, CUBIST_SMEM_LIMIT>;
static_assert(ThisVariant::kFits, "this GPU has too little shared memory for this variant");

/// Limits and scales of this thread's rows g and g + 8 from `row_base`.
template <class V>
__device__ __forceinline__ RowLimits limits_of(const CubistDecodeParams& params, const Work& work,
                                               const unsigned char* smem, int row_base) {
  const float scale =
      params.bmm1_scale_log2 != nullptr ? *params.bmm1_scale_log2 : params.scale_softmax_log2;
  const auto* row_scales = reinterpret_cast<const float*>(smem + V::kScaleOffset);
  RowLimits limits;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int index = row_base + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * r;
    const Row row = row_of(work, index);
    limits.first_key[r] = first_key(work, row.token);
    limits.end_key[r] = end_key(work, row.token);
    limits.scale[r] = V::kScalesQ ? scale * row_scales[index] : scale;
  }
  return limits;
}

/// Where one warp loads just the keys it reads, nobody else's progress matters to it.
template <class V>
__device__ __forceinline__ void wait_for_tile() {
  wait_for_copies<V::kStages - 2>();
  if constexpr (V::kKeyGroups == V::kWarps) {
    __syncwarp();
  } else {
    __syncthreads();
  }
}

template <class V>
__device__ __forceinline__ void decode(const CubistDecodeParams& params, unsigned char* smem) {
  wait_for_preceding_kernel();
  Work work;
  if (!find_work(params, V::kTileKv, work)) return;
  KvPipeline<V> pipeline(params, work, smem);
  pipeline.start();
  stage_query<V>(params, work, smem);
  __syncthreads();

  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row_base = warp / V::kKeyGroups * 16;
  const int key = warp % V::kKeyGroups * V::kKeysPerWarp;
  const RowLimits limits = limits_of<V>(params, work, smem, row_base);
  std::uint32_t fragments[V::kQInRegisters ? V::kHeadDim / 16 : 1][4];
  if constexpr (V::kQInRegisters) {
#pragma unroll
    for (int step = 0; step < V::kHeadDim / 16; ++step) {
      load_query_fragment<V>(fragments[step], smem, row_base, step);
    }
  }
  const auto query = [&](std::uint32_t(&a)[4], int step) {
    if constexpr (V::kQInRegisters) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = fragments[step][i];
    } else {
      load_query_fragment<V>(a, smem, row_base, step);
    }
  };

  // Tiles wholly between these are seen by every row.
  const int seen_from = first_key(work, work.num_tokens - 1);
  const int seen_to = end_key(work, 0);
  RowSums<V> sums;
  std::uint32_t stage = shared_address(smem);
  const std::uint32_t last_stage = stage + (V::kStages - 1) * V::kStageBytes;
  for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
    wait_for_tile<V>();
    pipeline.advance();
    const int first = tile * V::kTileKv;
    const bool masked = first < seen_from || first + V::kTileKv > seen_to;
    attend(sums, query, limits, stage, key, first, masked);
    stage =
        stage == last_stage ? stage - (V::kStages - 1) * V::kStageBytes : stage + V::kStageBytes;
  }
  release_following_kernel();
  finish(params, work, sums, smem);
}

}  // namespace cubist_decode

extern "C" __global__ void __launch_bounds__(cubist_decode::ThisVariant::kThreads)
    CUBIST_ENTRY(const __grid_constant__ CubistDecodeParams params) {
  extern __shared__ __align__(128) unsigned char smem[];
  cubist_decode::decode<cubist_decode::ThisVariant>(params, smem);
}
