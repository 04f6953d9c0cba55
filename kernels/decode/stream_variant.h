#pragma once

#include "variant.h"

namespace cubist_decode {

/// Compile-time shape of one stream kernel (sm_90a): a producer warp streams 64-key tiles of K and
/// V by TMA; consumer warpgroups multiply them by wgmma, 64 rows of (token, head) pairs at a time.
/// Read by nvcc for the kernel and by the host compiler for list_variants.cpp.
///
///   tile_q 64    every consumer has all rows; each takes every kConsumers-th tile; joined at the
///   end tile_q 128   both consumers take every tile, each for half of the rows
template <Type kType, int kHeadDimension, int kTileRows>
struct StreamVariant {
  static constexpr Type kQ = kType;
  static constexpr Type kKv = kType;
  static constexpr int kHeadDim = kHeadDimension;
  static constexpr int kTileQ = kTileRows;
  static constexpr int kTileKv = 64;
  static_assert(kHeadDim == 64 || kHeadDim == 128, "an accumulator of 64 rows must fit registers");
  static_assert(kTileQ == 64 || kTileQ == 128, "one or two times the 64 rows of a wgmma");

  static constexpr bool kSharesTile = kTileQ > 64;
  static constexpr int kConsumers = !kSharesTile && kHeadDim == 64 ? 3 : 2;
  static constexpr int kThreads = 128 * (kConsumers + 1);
  // Together no more than 64 K registers, multiples of eight.
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 152 : 216;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 56 : 72;

  // Bytes. A tile lies as panels of 64 elements, [head_dim / 64][64 rows][128 bytes], each swizzled
  // by 128 bytes; so does a consumer's copy of Q.
  static constexpr int kPanels = kHeadDim / 64;
  static constexpr int kPanelRowBytes = 128;
  static constexpr int kPanelBytes = 64 * kPanelRowBytes;
  static constexpr int kKvTileBytes = kPanels * kPanelBytes;
  static constexpr int kStageBytes = 2 * kKvTileBytes;
  // A multiple of the consumers where those split tiles, so that a stage always has one owner.
  static constexpr int kStages = kSharesTile ? 12 / kPanels : kHeadDim == 64 ? 9 : 4;
  static_assert(kSharesTile || kStages % kConsumers == 0, "a stage has one owner");
  static constexpr int kQOffset = kStages * kStageBytes;
  static constexpr int kQBytes = kConsumers * kPanels * kPanelBytes;

  // One consumer's sums, thread by thread: [head_dim / 8][128 threads] float4, then the threads'
  // {maximum, sum} of two rows. The layout of partial results in the workspace too.
  static constexpr int kSumFloats = 128 * (kHeadDim / 2 + 4);
  static constexpr int kScratchOffset = kQOffset + kQBytes;
  static constexpr int kScratchBytes = kSharesTile ? 0 : (kConsumers - 1) * kSumFloats * 4;
  static constexpr int kBarrierOffset = kScratchOffset + kScratchBytes;
  static constexpr int kSmemBytes = kBarrierOffset + 16 * kStages + 16;
  static constexpr bool kFits = kSmemBytes <= 232448;
};

}  // namespace cubist_decode
