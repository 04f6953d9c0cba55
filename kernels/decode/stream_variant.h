#pragma once

#include <type_traits>

#include "variant.h"

namespace cubist_decode {

/// How e4m3 tiles lie where the copy engine leaves them, for those who make 16-bit tiles of them: a
/// row of K or V has head_dim bytes, swizzled by as many.
template <int kHeadDimension, int kStageCount>
struct RawTiles {
  static constexpr int kTileKv = 64;
  static constexpr int kStages = kStageCount;
  static constexpr int kPanels = 1;
  static constexpr int kPanelRowBytes = kHeadDimension;
  static constexpr int kPanelBytes = kTileKv * kPanelRowBytes;
  static constexpr int kKvTileBytes = kPanelBytes;
  static constexpr int kStageBytes = 2 * kKvTileBytes;
};

/// Compile-time shape of one stream kernel (sm_90a): a producer warp streams 64-key tiles of K and
/// V by TMA; consumer warpgroups multiply them by wgmma, 64 rows of (token, head) pairs at a time.
/// Between them, where K and V are e4m3, a converter warpgroup makes fp16 tiles of the bytes. Read
/// by nvcc for the kernel and by the host compiler for list_variants.cpp.
///
///   tile_q 64    every consumer has all rows; each takes every kConsumers-th tile; joined at the
///   end tile_q 128   both consumers take every tile, each for half of the rows
template <Type kTypeQ, Type kTypeKv, int kHeadDimension, int kTileRows>
struct StreamVariant {
  static constexpr Type kQ = kTypeQ;
  static constexpr Type kKv = kTypeKv;
  static constexpr int kHeadDim = kHeadDimension;
  static constexpr int kTileQ = kTileRows;
  static constexpr int kTileKv = 64;
  static constexpr bool kConvertsKv = kKv == Type::kE4m3;
  static constexpr Type kMma = kConvertsKv ? Type::kFp16 : kKv;
  static_assert(kConvertsKv || kQ == kKv, "Q has the type of K and V, unless those are e4m3");
  // fp16's range is smaller than that of 16-bit Q.
  static constexpr bool kScalesQ = kConvertsKv && kQ != Type::kE4m3;
  static constexpr Type kO = output_of(kQ);
  static_assert(kHeadDim == 64 || kHeadDim == 128, "an accumulator of 64 rows must fit registers");
  static_assert(kTileQ == 64 || kTileQ == 128, "one or two times the 64 rows of a wgmma");

  static constexpr bool kSharesTile = kTileQ > 64;
  // Scores are queued a tile ahead (AheadConsumer), where there are stages enough.
  static constexpr bool kRunsAhead = kSharesTile || kConvertsKv;
  static constexpr int kConsumers = !kRunsAhead && kHeadDim == 64 ? 3 : 2;
  static constexpr int kConverters = kConvertsKv ? 1 : 0;
  static constexpr int kThreads = 128 * (kConsumers + kConverters + 1);
  // Together no more than 64 K registers, multiples of eight.
  static constexpr int kConsumerRegisters = kConsumers == 3 ? 152 : 216;
  static constexpr int kConverterRegisters = 48;
  static constexpr int kProducerRegisters = kConsumers == 3 ? 56 : kConvertsKv ? 32 : 72;
  // Rows of Q in registers instead of shared memory: no faster in the others.
  static constexpr bool kHoldsRows = kConvertsKv && !kSharesTile;

  // Bytes. A tile lies as panels of 64 elements, [head_dim / 64][64 rows][128 bytes], each swizzled
  // by 128 bytes; so does a consumer's copy of Q.
  static constexpr int kPanels = kHeadDim / 64;
  static constexpr int kPanelRowBytes = 128;
  static constexpr int kPanelBytes = 64 * kPanelRowBytes;
  static constexpr int kKvTileBytes = kPanels * kPanelBytes;
  static constexpr int kStageBytes = 2 * kKvTileBytes;
  // A multiple of the consumers where those split tiles, so that a stage always has one owner.
  static constexpr int kStages = kConvertsKv      ? 8 / kPanels
                                 : kSharesTile    ? 12 / kPanels
                                 : kHeadDim == 64 ? 9
                                                  : 4;
  static_assert(kSharesTile || kStages % kConsumers == 0, "a stage has one owner");
  // Where e4m3 bytes come in: what shared memory is left.
  using Raw = RawTiles<kHeadDim, kHeadDim == 64 ? 7 : 4>;
  static constexpr int kRawOffset = kStages * kStageBytes;
  static constexpr int kRawBytes = kConvertsKv ? Raw::kStages * Raw::kStageBytes : 0;
  // What the producer fills.
  using Loaded = std::conditional_t<kConvertsKv, Raw, StreamVariant>;
  static constexpr int kLoadedOffset = kConvertsKv ? kRawOffset : 0;
  static constexpr int kQOffset = kRawOffset + kRawBytes;
  static constexpr int kQBytes = kConsumers * kPanels * kPanelBytes;

  // One consumer's sums, thread by thread: [head_dim / 8][128 threads] float4, then the threads'
  // {maximum, sum} of two rows. The layout of partial results in the workspace too.
  static constexpr int kSumFloats = 128 * (kHeadDim / 2 + 4);
  static constexpr int kScratchOffset = kQOffset + kQBytes;
  static constexpr int kScratchBytes = kSharesTile ? 0 : (kConsumers - 1) * kSumFloats * 4;
  // What the scores of a consumer's rows are to be multiplied by.
  static constexpr int kRowScaleOffset = kScratchOffset + kScratchBytes;
  static constexpr int kRowScaleBytes = kConvertsKv ? kConsumers * 64 * 4 : 0;
  static constexpr int kBarrierOffset = kRowScaleOffset + kRowScaleBytes;
  static constexpr int kRawBarrierOffset = kBarrierOffset + 16 * kStages;
  static constexpr int kLoadedBarrierOffset = kConvertsKv ? kRawBarrierOffset : kBarrierOffset;
  // A part of the CTA's range, as one warp tells the consumers: Task. Of two: there, done.
  static constexpr int kTaskBytes = 160;
  static constexpr int kTaskBarrierOffset =
      kRawBarrierOffset + (kConvertsKv ? 16 * Raw::kStages : 0);
  static constexpr int kTaskOffset = kTaskBarrierOffset + (kRunsAhead ? 32 : 0);
  // Whether this CTA's part of a half's rows is the last to be there.
  static constexpr int kLastOffset = kTaskOffset + (kRunsAhead ? 2 * kTaskBytes : 0);
  static constexpr int kSmemBytes = kLastOffset + 16;
  static constexpr bool kFits = kSmemBytes <= 232448;
};

}  // namespace cubist_decode
