#pragma once

#include <cstdint>

#include "convert.cuh"
#include "ptx.cuh"
#include "stream_load.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"
#include "swizzle.cuh"

namespace cubist_decode {

/// The converter warpgroup: makes of each tile of e4m3 bytes one of fp16, which holds them exactly,
/// laid out as the consumers of a 16-bit cache find it. A thread has 16 elements of a row at a
/// time.
template <class V>
class TileConverter {
 public:
  __device__ __forceinline__ TileConverter(unsigned char* smem, StageBarriers<V> barriers,
                                           StageBarriers<typename V::Raw> raw_barriers)
      : smem_(smem), barriers_(barriers), raw_barriers_(raw_barriers) {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    // Eight threads that read or write together touch all banks: they have four neighbouring
    // chunks each of two rows whose numbers differ so that both swizzles keep them apart.
    int row = thread / kRowChunks;
    int chunk = thread % kRowChunks;
    if constexpr (kRowChunks == 8) {
      row = (thread / 16 & 1) * 2 | (thread / 32 & 1) * 4 | thread / 64 * 8;
      row ^= thread / 4 % 2 * 5;
      chunk = thread % 4 | thread / 8 % 2 * 4;
    }
    from_ = static_cast<int>(swizzled<V::kHeadDim>(row, chunk));
    to_ = chunk / 4 * V::kPanelBytes + row * 128 + (chunk % 4 * 2 ^ row % 8) * 16;
  }

  __device__ __forceinline__ void convert_range(const CubistDecodeParams& params) {
    StreamSchedule schedule(params, V::kTileKv);
    Work work;
    Part part;
    while (schedule.next(work, part)) {
      for (int tile = work.tile_begin; tile < work.tile_end; ++tile) convert_tile();
    }
  }

 private:
  using Raw = typename V::Raw;
  static constexpr int kRowChunks = V::kHeadDim / 16;
  static constexpr int kChunks = Raw::kKvTileBytes / 16 / 128;  // of a tile of K or V, a thread's

  __device__ __forceinline__ void convert_tile() {
    const unsigned char* raw = smem_ + V::kRawOffset + raw_.stage * Raw::kStageBytes + from_;
    unsigned char* stage = smem_ + cursor_.stage * V::kStageBytes;
    wait_barrier(raw_barriers_.full(raw_.stage), raw_.parity);
    // In as many rounds as registers allow.
#pragma unroll
    for (int tensor = 0; tensor < 2; ++tensor) {
      uint4 bytes[kChunks];
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        bytes[i] = *reinterpret_cast<const uint4*>(raw + tensor * Raw::kKvTileBytes + i * 128 * 16);
      }
      if (tensor == 0) wait_barrier(barriers_.empty(cursor_.stage), cursor_.parity ^ 1U);
#pragma unroll
      for (int i = 0; i < kChunks; ++i) {
        // Rows further by a multiple of eight: swizzled alike.
        unsigned char* to = stage + tensor * V::kKvTileBytes + i * (128 / kRowChunks) * 128;
        *reinterpret_cast<uint4*>(to + to_) = e4m3_to_fp16(bytes[i].x, bytes[i].y);
        *reinterpret_cast<uint4*>(to + (to_ ^ 16)) = e4m3_to_fp16(bytes[i].z, bytes[i].w);
      }
    }
    fence_async_proxy();
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
      arrive(raw_barriers_.empty(raw_.stage));
      arrive(barriers_.full(cursor_.stage));
    }
    raw_.advance();
    cursor_.advance();
  }

  static __device__ __forceinline__ uint4 e4m3_to_fp16(std::uint32_t low, std::uint32_t high) {
    return make_uint4(e4m3_pair_to_fp16(low), e4m3_high_pair_to_fp16(low), e4m3_pair_to_fp16(high),
                      e4m3_high_pair_to_fp16(high));
  }

  unsigned char* const smem_;
  const StageBarriers<V> barriers_;
  const StageBarriers<Raw> raw_barriers_;
  int from_;  // where the first 16 bytes of the thread lie in a tile as it comes in
  int to_;    // and where the first eight of them belong; the others: ^ 16
  StageCursor<Raw::kStages> raw_;
  StageCursor<V::kStages> cursor_;
};

}  // namespace cubist_decode
