#pragma once

/// Compile-time shape of one decode kernel. Read by nvcc for the kernel and by the host compiler
/// for list_variants.cpp, so that threads and shared memory in the manifest come from here alone.
namespace cubist_decode {

enum class Type { kBf16, kFp16, kE4m3 };

/// What O holds where nobody asks for something else: 16 bits an element.
constexpr Type output_of(Type type_q) { return type_q == Type::kE4m3 ? Type::kBf16 : type_q; }

constexpr int max_of(int a, int b) { return a > b ? a : b; }
constexpr int min_of(int a, int b) { return a < b ? a : b; }

/// One 64-key tile of K and V a pipeline stage; tile_q rows of (token, head) pairs in groups of 16.
/// Warps: one a row group, at least four; where there are fewer row groups than warps, the warps of
/// one group share a tile's keys and are joined once, after the last tile.
///
/// kSmemLimit  shared memory one CTA may have on the GPU it is compiled for, bytes
template <Type kTypeQ, Type kTypeKv, int kHeadDimension, int kTileRows, int kSmemLimit>
struct Variant {
  static constexpr Type kQ = kTypeQ;
  static constexpr Type kKv = kTypeKv;
  static constexpr int kHeadDim = kHeadDimension;
  static constexpr int kTileQ = kTileRows;
  static constexpr int kTileKv = 64;
  // e4m3 keys and values (and Q) become fp16, which holds each of them exactly, on their way to the
  // MMA.
  static constexpr bool kConvertsKv = kKv == Type::kE4m3;
  static constexpr Type kMma = kConvertsKv ? Type::kFp16 : kKv;
  static_assert(kConvertsKv || kQ == kKv, "Q has the type of K and V, unless those are e4m3");
  // fp16's range is smaller than that of 16-bit Q.
  static constexpr bool kScalesQ = kConvertsKv && kQ != Type::kE4m3;

  static constexpr int kRowGroups = kTileQ / 16;
  static constexpr int kWarps = max_of(kRowGroups, 4);
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kKeyGroups = kWarps / kRowGroups;
  static constexpr int kKeysPerWarp = kTileKv / kKeyGroups;

  // Shared memory while keys stream through: the stages, the rows of Q, a scale for each row.
  // Bytes.
  static constexpr int kKvRowBytes = kHeadDim * (kKv == Type::kE4m3 ? 1 : 2);
  static constexpr int kKvTileBytes = kTileKv * kKvRowBytes;
  static constexpr int kStageBytes = 2 * kKvTileBytes;
  static constexpr int kQBytes = kTileQ * kHeadDim * 2;
  static constexpr int kScaleBytes = kTileQ * 4;
  // Three to six, so that two CTAs share an SM of 227 KB; fewer where that is more than the limit.
  static constexpr int kWantedStages = kStageBytes > 16384 ? 3 : kStageBytes == 16384 ? 4 : 6;
  static constexpr int kStages =
      min_of(kWantedStages, (kSmemLimit - kQBytes - kScaleBytes) / kStageBytes);
  static constexpr int kQOffset = kStages * kStageBytes;
  static constexpr int kScaleOffset = kQOffset + kQBytes;
  static constexpr int kStreamBytes = kScaleOffset + kScaleBytes;

  // Afterwards the same bytes hold each warp's sums or the weights of the CTAs to be joined, and a
  // flag. Eight floats of padding keep the accumulators' stores free of bank conflicts.
  static constexpr int kSumPitch = kHeadDim + 8;
  static constexpr int kSumBytes = kWarps * 16 * kSumPitch * 4;
  static constexpr int kJoinBytes = kSumBytes + kWarps * 16 * 8;
  static constexpr int kMaxCtasKv = 64;
  static constexpr int kWeightBytes = (kMaxCtasKv + 2) * kTileQ * 4;

  static constexpr int kFlagOffset = max_of(kJoinBytes, kWeightBytes);

  static constexpr int kSmemBytes = max_of(kStreamBytes, kFlagOffset + 16);
  /// Whether the GPU can hold it at all: one stage read while another is filled.
  static constexpr bool kFits = kStages >= 2 && kSmemBytes <= kSmemLimit;

  // Fragments of Q stay in registers unless the accumulators need the room.
  static constexpr bool kQInRegisters = kHeadDim <= 128;
};

}  // namespace cubist_decode
