#pragma once

#include "variant.h"

namespace cubist_decode {

/// Compile-time shape of one transposed stream kernel (sm_90a): as StreamVariant, but the keys of a
/// tile are the 64 rows of the MMA and the (token, head) rows its columns, so that few rows cost
/// little. Scores and sums are held transposed. Each consumer takes every kConsumers-th tile; they
/// are joined at the end. e4m3 keys and values become fp16 on their way through registers.
template <Type kTypeQ, Type kTypeKv, int kHeadDimension, int kTileRows>
struct TransposedVariant {
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
  static_assert(kHeadDim == 64 || kHeadDim == 128, "64 columns of V are one MMA's rows");
  static_assert(kTileQ % 8 == 0 && kHeadDim * kTileQ <= 128 * 48,
                "columns of an MMA whose sums fit registers");

  static constexpr bool kSharesTile = false;
  static constexpr int kConverters = 0;
  using Loaded = TransposedVariant;
  static constexpr int kLoadedOffset = 0;
  static constexpr int kConsumers =
      kConvertsKv ? (kHeadDim == 64 ? (kTileQ <= 32 ? 4 : 3) : 3) : (kHeadDim == 64 ? 3 : 2);
  static constexpr int kThreads = 128 * (kConsumers + 1);
  // Together no more than 64 K registers, multiples of eight.
  static constexpr int kConsumerRegisters = kConsumers == 4 ? 112 : kConsumers == 3 ? 160 : 232;
  static constexpr int kProducerRegisters = kConsumers == 4 ? 32 : kConsumers == 3 ? 32 : 40;

  // Bytes. A tile lies as panels of at most 128 bytes a row, [kPanels][64 rows][kPanelRowBytes],
  // swizzled; Q as panels of 64 elements, [head_dim / 64][tile_q][128 bytes].
  static constexpr int kRowBytes = kHeadDim * (kConvertsKv ? 1 : 2);
  static constexpr int kPanelRowBytes = min_of(kRowBytes, 128);
  static constexpr int kPanels = kRowBytes / kPanelRowBytes;
  static constexpr int kPanelBytes = 64 * kPanelRowBytes;
  static constexpr int kKvTileBytes = kPanels * kPanelBytes;
  static constexpr int kStageBytes = 2 * kKvTileBytes;
  static constexpr int kQPanelBytes = kTileQ * 128;
  static constexpr int kQBytes = kHeadDim / 64 * kQPanelBytes;

  // A consumer's probabilities: two buffers, so that the next tile's may be written while other
  // warps still multiply these. What a warp knows of each pair of columns, see ColumnPair; the
  // warps' own maxima or sums of each column.
  static constexpr int kProbabilityBytes = 64 * kTileQ * 2;
  static constexpr int kPairBytes = kConvertsKv ? 16 : 8;
  static constexpr int kPairsBytes = 4 * kTileQ / 2 * kPairBytes;
  static constexpr int kExchangeBytes = 4 * kTileQ * 4;

  // One consumer's sums, thread by thread: [head_dim / 64][tile_q / 8][128 threads] float4, then
  // {maximum, sum} of every column. The layout of partial results in the workspace too.
  static constexpr int kBlocks = kHeadDim / 64;
  static constexpr int kValueFloats = kHeadDim * kTileQ;
  static constexpr int kSumFloats = kValueFloats + 2 * kTileQ;

  // A part of the CTA's range, as one warp tells the consumers: Task.
  static constexpr int kTaskBytes = 160;

  static constexpr int kScratchBytes = (kConsumers - 1) * kValueFloats * 4;
  static constexpr int kFixedBytes =
      kQBytes + kTileQ * 4 + kScratchBytes +
      kConsumers * (2 * kProbabilityBytes + kPairsBytes + kExchangeBytes) + 2 * kTaskBytes + 48;
  // A multiple of the consumers, so that a stage always has one owner.
  static constexpr int kStages =
      (232448 - kFixedBytes) / (kStageBytes + 16) / kConsumers * kConsumers;
  static constexpr int kQOffset = kStages * kStageBytes;
  static constexpr int kProbabilityOffset = kQOffset + kQBytes;
  static constexpr int kScratchOffset = kProbabilityOffset + kConsumers * 2 * kProbabilityBytes;
  static constexpr int kPairsOffset = kScratchOffset + kScratchBytes;
  static constexpr int kExchangeOffset = kPairsOffset + kConsumers * kPairsBytes;
  static constexpr int kRowScaleOffset = kExchangeOffset + kConsumers * kExchangeBytes;
  static constexpr int kTaskOffset = kRowScaleOffset + kTileQ * 4;
  static constexpr int kBarrierOffset = kTaskOffset + 2 * kTaskBytes;
  static constexpr int kLoadedBarrierOffset = kBarrierOffset;
  // Of the two tasks: there, done.
  static constexpr int kTaskBarrierOffset = kBarrierOffset + 16 * kStages + 16;
  static constexpr int kSmemBytes = kTaskBarrierOffset + 32;
  static constexpr bool kFits = kStages >= 2 * kConsumers && kSmemBytes <= 232448;
};

}  // namespace cubist_decode
