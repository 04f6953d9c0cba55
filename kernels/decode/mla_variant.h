#pragma once

#include "variant.h"

namespace cubist_decode {

/// Compile-time shape of one MLA kernel (sm_90a): keys of 576 elements, whose first 512 are the
/// values too, read once. A producer warpgroup streams 64-key tiles by TMA; two consumer warpgroups
/// have the same 64 rows of (token, head) pairs. Each scores every other tile and makes half of the
/// columns of O from all of them. Read by nvcc for the kernel and by the host compiler for
/// list_variants.cpp.
///
/// kTypeKv  kTypeQ, or e4m3 with bf16 Q: the producer warpgroup then makes bf16 of it
template <Type kTypeQ, Type kTypeKv>
struct MlaVariant {
  static constexpr Type kQ = kTypeQ;
  static constexpr Type kKv = kTypeKv;
  static constexpr bool kConverts = kTypeKv == Type::kE4m3;
  static_assert(kTypeKv == kTypeQ || (kConverts && kTypeQ == Type::kBf16));
  static constexpr int kHeadDimQk = 576;
  static constexpr int kHeadDimVo = 512;
  static constexpr int kTileQ = 64;
  static constexpr int kTileKv = 64;
  static constexpr int kConsumers = 2;
  static constexpr int kThreads = 128 * (kConsumers + 1);
  // Together no more than 64 K registers, multiples of eight.
  static constexpr int kConsumerRegisters = kConverts ? 232 : 240;
  static constexpr int kProducerRegisters = kConverts ? 40 : 24;

  // What the parts that are shared with the stream kernels see: the columns of one consumer.
  static constexpr int kHeadDim = kHeadDimVo / kConsumers;
  static constexpr bool kSharesTile = true;
  static constexpr int kSumFloats = 128 * (kHeadDim / 2 + 4);

  // Bytes. A tile lies as panels of 64 elements, [576 / 64][64 keys][128 bytes], each swizzled by
  // 128 bytes; so do Q, but for its last panel, and probabilities. Two stages are all that fit.
  static constexpr int kPanelBytes = 64 * 128;
  static constexpr int kPanels = kHeadDimQk / 64;
  static constexpr int kHalfPanels = kHeadDim / 64;
  static constexpr int kHalfBytes = kHalfPanels * kPanelBytes;
  static constexpr int kStages = 2;
  static constexpr int kStageBytes = kPanels * kPanelBytes;
  static constexpr int kQOffset = kStages * kStageBytes;
  static constexpr int kQBytes = 2 * kHalfBytes;
  static constexpr int kProbabilityOffset = kQOffset + kQBytes;
  static constexpr int kStatsOffset = kProbabilityOffset + kConsumers * kPanelBytes;
  static constexpr int kStatsBytes = kConsumers * 3 * 64 * 4;
  static constexpr int kBarrierOffset = kStatsOffset + kStatsBytes;
  static constexpr int kBarriers = 20;
  static constexpr int kSmemBytes = kBarrierOffset + 8 * kBarriers + 16;
  static constexpr bool kFits = kSmemBytes <= 232448;
};

}  // namespace cubist_decode
