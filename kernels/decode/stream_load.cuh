#pragma once

#include <cstdint>

#include "ptx.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

/// Which stage a warp is at and how often it has been around: tile i of the CTA lies in stage
/// i % kStages, counted without dividing. kStep: tiles from one of the warp's to its next.
template <int kStages, int kStep = 1>
struct StageCursor {
  static_assert(kStages % kStep == 0, "a stage has one owner");
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    stage += kStep;
    if (stage >= kStages) {
      stage -= kStages;
      parity ^= 1U;
    }
  }
};

/// Addresses of the barriers: full[kStages], empty[kStages].
template <class V>
struct StageBarriers {
  std::uint32_t first;
  __device__ __forceinline__ std::uint32_t full(int stage) const {
    return first + static_cast<std::uint32_t>(8 * stage);
  }
  __device__ __forceinline__ std::uint32_t empty(int stage) const {
    return first + static_cast<std::uint32_t>(8 * (V::kStages + stage));
  }
};

/// The producer warp. Pages that hold no key of the sequence are not read, nor are their numbers in
/// the block table; the stage keeps older bytes there. Where the parameters allow it, keys older
/// than the sequence's new tokens are read before the preceding kernel, which may append those, has
/// ended.
///
///   page of 64 or more     one box a tensor: all panels of the tile's 64 tokens
///   page of 16 or 32       a box for each panel of each page
template <class V>
class TileLoader {
 public:
  __device__ __forceinline__ TileLoader(const CubistDecodeParams& params, std::uint32_t stages,
                                        StageBarriers<V> barriers)
      : params_(params), stages_(stages), barriers_(barriers), waits_(params.prefetch_kv != 0) {}

  __device__ __forceinline__ void load(const Work& work, const Part& part) {
    kv_head_ = work.first_head / params_.num_heads_per_kv;
    pages_ =
        params_.block_table + static_cast<std::int64_t>(part.batch) * params_.max_pages_per_seq;
    first_page_ = work.key_begin >> params_.page_size_log2;
    end_page_ = ((work.key_end - 1) >> params_.page_size_log2) + 1;
    chunk_ = (work.tile_begin * V::kTileKv) >> params_.page_size_log2;
    numbers_ = page_number(chunk_ + lane());
    next_numbers_ = page_number(chunk_ + 32 + lane());
    const int first_new_key = work.first_position - work.first_token;
    for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
      if (waits_ && (tile + 1) * V::kTileKv > first_new_key) {
        wait_for_preceding_kernel();
        waits_ = false;
      }
      wait_barrier(barriers_.empty(cursor_.stage), cursor_.parity ^ 1U);
      load_tile(tile);
      cursor_.advance();
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ __forceinline__ int page_number(int page) const {
    return page >= first_page_ && page < end_page_ ? pages_[page] : -1;
  }

  __device__ __forceinline__ void load_tile(int tile) {
    const int page_size = 1 << params_.page_size_log2;
    const int first = (tile * V::kTileKv) >> params_.page_size_log2;
    if (first >= chunk_ + 32) {
      chunk_ += 32;
      numbers_ = next_numbers_;
      next_numbers_ = page_number(chunk_ + 32 + lane());
    }
    const std::uint32_t full = barriers_.full(cursor_.stage);
    const std::uint32_t k = stages_ + static_cast<std::uint32_t>(cursor_.stage * V::kStageBytes);
    const std::uint32_t v = k + V::kKvTileBytes;
    if (page_size >= V::kTileKv) {
      const int page = __shfl_sync(0xffffffffU, numbers_, first - chunk_);
      if (lane() == 0) {
        const int token = tile * V::kTileKv & (page_size - 1);
        arrive_expecting(full, V::kStageBytes);
        copy_box(k, &params_.k_map, full, token, 0, kv_head_, page);
        copy_box(v, &params_.v_map, full, token, 0, kv_head_, page);
      }
      return;
    }
    // Lane: tensor fastest, then panel, then page.
    const int tensor = lane() % 2;
    const int panel = lane() / 2 % V::kPanels;
    const int slot = lane() / (2 * V::kPanels);
    const bool has_box = slot < V::kTileKv / page_size;
    const int page = __shfl_sync(0xffffffffU, numbers_, (first - chunk_ + slot) % 32);
    const bool reads = has_box && page >= 0;
    const unsigned readers = __ballot_sync(0xffffffffU, reads);
    if (lane() == 0) {
      arrive_expecting(full,
                       static_cast<std::uint32_t>(__popc(readers) * page_size * V::kPanelRowBytes));
    }
    __syncwarp();
    if (reads) {
      const std::uint32_t to =
          (tensor == 0 ? k : v) +
          static_cast<std::uint32_t>(panel * V::kPanelBytes + slot * page_size * V::kPanelRowBytes);
      copy_box(to, tensor == 0 ? &params_.k_map : &params_.v_map, full, 0, panel, kv_head_, page);
    }
  }

  const CubistDecodeParams& params_;
  const std::uint32_t stages_;
  const StageBarriers<V> barriers_;
  StageCursor<V::kStages> cursor_;
  bool waits_;  // the preceding kernel's writes are not known to be visible yet
  const std::int32_t* pages_ = nullptr;
  int kv_head_ = 0;
  int first_page_ = 0;
  int end_page_ = 0;
  int chunk_ = 0;  // first of 32 pages whose numbers the lanes hold
  int numbers_ = -1;
  int next_numbers_ = -1;  // those of the 32 behind
};

}  // namespace cubist_decode
