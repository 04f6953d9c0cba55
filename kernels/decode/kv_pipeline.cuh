#pragma once

#include <cstdint>

#include "ptx.cuh"
#include "swizzle.cuh"
#include "variant.h"
#include "work.cuh"

namespace cubist_decode {

/// Streams the CTA's tiles of K and V through the stages of shared memory by cp.async.
///
/// Each warp loads the same share of every tile: keys [warp, warp + 1) * kKeysAtOnce. Lane l < 16
/// knows where key l of the share lies in K, lane 16 + l where it lies in V; the page numbers of
/// the next tile are read one tile ahead. Keys no row sees are zero: their pages are not read, nor
/// are their numbers in the block table.
///
///   stage:  K [64 keys][head_dim]  V [64 keys][head_dim]     rows swizzled (swizzle.cuh)
template <class V>
class KvPipeline {
 public:
  __device__ __forceinline__ KvPipeline(const CubistDecodeParams& params, const Work& work,
                                        const unsigned char* smem)
      : work_(work), stages_(shared_address(smem)), next_tile_(work.tile_begin) {
    const int kv_head = work.first_head / params.num_heads_per_kv;
    const int chunk = lane() % kChunks * 16;
    k_ = static_cast<const char*>(params.k) + kv_head * params.k_stride_heads * kBytes + chunk;
    v_ = static_cast<const char*>(params.v) + kv_head * params.v_stride_heads * kBytes + chunk;
    pages_ = params.block_table + static_cast<std::int64_t>(blockIdx.z) * params.max_pages_per_seq;
    page_size_log2_ = params.page_size_log2;
    const bool of_v = lane() >= 16;
    stride_pages_ = (of_v ? params.v_stride_pages : params.k_stride_pages) * kBytes;
    stride_tokens_ = (of_v ? params.v_stride_tokens : params.k_stride_tokens) * kBytes;
  }

  /// Starts the copies of the first kStages - 1 tiles.
  __device__ __forceinline__ void start() {
    int pages[V::kStages - 1];
#pragma unroll
    for (int i = 0; i < V::kStages - 1; ++i) pages[i] = page_of(next_tile_ + i);
#pragma unroll 1  // keeps the kernel small; moving the pages along keeps them in registers
    for (int i = 0; i < V::kStages - 1; ++i) {
      page_ = pages[0];
#pragma unroll
      for (int j = 0; j < V::kStages - 2; ++j) pages[j] = pages[j + 1];
      copy_tile();
    }
    page_ = page_of(next_tile_);
  }

  /// Starts the copy of the next tile, if there is one, into the stage read longest ago.
  __device__ __forceinline__ void advance() {
    copy_tile();
    page_ = page_of(next_tile_);
  }

 private:
  static constexpr int kBytes = V::kKv == Type::kE4m3 ? 1 : 2;
  static constexpr int kKeysAtOnce = V::kTileKv / V::kWarps;
  static constexpr int kChunks = V::kKvRowBytes / 16;
  static constexpr int kRowsPerCopy = 32 / kChunks;
  static_assert(kKeysAtOnce <= 16 && kKeysAtOnce % kRowsPerCopy == 0, "lanes cover whole rows");

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x) / 32; }

  __device__ __forceinline__ int key_of(int tile) const {
    return tile * V::kTileKv + warp() * kKeysAtOnce + lane() % 16;
  }

  /// Page of this lane's key; -1 where no row sees it.
  __device__ __forceinline__ int page_of(int tile) const {
    const int key = key_of(tile);
    const bool seen = tile < work_.tile_end && key >= work_.key_begin && key < work_.key_end &&
                      lane() % 16 < kKeysAtOnce;
    return seen ? pages_[key >> page_size_log2_] : -1;
  }

  /// Copies tile next_tile_, whose pages are known, and commits; past the end it commits nothing,
  /// so that waits count the same everywhere.
  __device__ __forceinline__ void copy_tile() {
    if (next_tile_ < work_.tile_end) {
      const int token = key_of(next_tile_) & ((1 << page_size_log2_) - 1);
      const std::int64_t offset = page_ < 0 ? 0 : page_ * stride_pages_ + token * stride_tokens_;
      const unsigned seen = __ballot_sync(0xffffffffU, page_ >= 0) >> (lane() / kChunks);
      const std::uint32_t stage = stages_ + static_cast<std::uint32_t>(stage_ * V::kStageBytes);
      const int chunk = lane() % kChunks;
#pragma unroll
      for (int i = 0; i < kKeysAtOnce / kRowsPerCopy; ++i) {
        const int row = i * kRowsPerCopy + lane() / kChunks;
        const std::int64_t k_offset = __shfl_sync(0xffffffffU, offset, row);
        const std::int64_t v_offset = __shfl_sync(0xffffffffU, offset, row + 16);
        const std::uint32_t to =
            stage + swizzled<V::kKvRowBytes>(warp() * kKeysAtOnce + row, chunk);
        const bool row_seen = (seen >> (i * kRowsPerCopy) & 1) != 0;
        copy_async_16(to, k_ + k_offset, row_seen);
        copy_async_16(to + V::kKvTileBytes, v_ + v_offset, row_seen);
      }
    }
    commit_copies();
    ++next_tile_;
    stage_ = stage_ + 1 == V::kStages ? 0 : stage_ + 1;
  }

  const Work& work_;
  const std::uint32_t stages_;
  const char* k_;
  const char* v_;
  const std::int32_t* pages_;
  int page_size_log2_;
  std::int64_t stride_pages_;  // bytes; of K in the lower, of V in the upper half of the warp
  std::int64_t stride_tokens_;
  int next_tile_;
  int stage_ = 0;
  int page_ = -1;
};

}  // namespace cubist_decode
