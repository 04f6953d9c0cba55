#pragma once

#include <cstdint>

#include "mla_variant.h"
#include "ptx.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

/// Whether the phase of that parity is complete.
__device__ __forceinline__ bool test_barrier(std::uint32_t barrier, std::uint32_t parity) {
  int done;
  asm volatile(
      "{\n.reg .pred done;\nmbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n"
      "selp.s32 %0, 1, 0, done;\n}"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

/// Addresses of the barriers. `piece` of a stage: 0 and 1 the halves that are values too, 2 the
/// rest of the keys.
struct MlaBarriers {
  std::uint32_t first;
  __device__ __forceinline__ std::uint32_t at(int index) const {
    return first + static_cast<std::uint32_t>(8 * index);
  }
  __device__ __forceinline__ std::uint32_t full(int stage, int piece) const {
    return at(3 * stage + piece);
  }
  __device__ __forceinline__ std::uint32_t empty(int stage, int piece) const {
    return at(6 + 3 * stage + piece);
  }
  __device__ __forceinline__ std::uint32_t probabilities_full(int consumer) const {
    return at(12 + consumer);
  }
  __device__ __forceinline__ std::uint32_t probabilities_empty(int consumer) const {
    return at(14 + consumer);
  }
  __device__ __forceinline__ std::uint32_t sums_full(int consumer) const {
    return at(16 + consumer);
  }
  __device__ __forceinline__ std::uint32_t q_full() const { return at(18); }
  __device__ __forceinline__ std::uint32_t q_empty() const { return at(19); }
};

/// The page numbers of a sequence, as a producer warp goes through its tiles: 32 at a time, a lane
/// each, and the 32 behind them. Pages that hold no key of the sequence are never looked up.
class MlaPages {
 public:
  __device__ __forceinline__ void begin(const CubistDecodeParams& params, const Work& work,
                                        const Part& part, int first_key) {
    log2_ = params.page_size_log2;
    numbers_of_sequence_ =
        params.block_table + static_cast<std::int64_t>(part.batch) * params.max_pages_per_seq;
    first_page_ = work.key_begin >> log2_;
    end_page_ = ((work.key_end - 1) >> log2_) + 1;
    chunk_ = first_key >> log2_;
    numbers_ = look_up(chunk_ + lane());
    next_numbers_ = look_up(chunk_ + 32 + lane());
  }

  /// Goes on to the tile that begins at `first_key`. All lanes call.
  __device__ __forceinline__ void go_to(int first_key) {
    if (first_key >> log2_ < chunk_ + 32) return;
    chunk_ += 32;
    numbers_ = next_numbers_;
    next_numbers_ = look_up(chunk_ + 32 + lane());
  }

  /// Number of the page of a key of that tile, or -1. All lanes call.
  __device__ __forceinline__ int number_of(int key) const {
    return __shfl_sync(0xffffffffU, numbers_, ((key >> log2_) - chunk_) % 32);
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ __forceinline__ int look_up(int page) const {
    return page >= first_page_ && page < end_page_ ? numbers_of_sequence_[page] : -1;
  }

  int log2_ = 0;
  const std::int32_t* numbers_of_sequence_ = nullptr;
  int first_page_ = 0;
  int end_page_ = 0;
  int chunk_ = 0;  // first of the pages whose numbers the lanes hold
  int numbers_ = -1;
  int next_numbers_ = -1;
};

/// A producer warp that brings one piece of every tile. Pages that hold no key of the sequence are
/// not read, nor are their numbers in the block table; the stage keeps older bytes there. Where the
/// parameters allow it, keys older than the sequence's new tokens are read before the preceding
/// kernel, which may append those, has ended.
/// A box: 64 elements of one page's tokens, at most 64. A lane each: panel fastest, then page.
template <class V>
class MlaTileLoader {
 public:
  __device__ __forceinline__ MlaTileLoader(const CubistDecodeParams& params, std::uint32_t stages,
                                           MlaBarriers barriers, int piece)
      : params_(params),
        stages_(stages),
        barriers_(barriers),
        piece_(piece),
        panels_(piece < 2 ? V::kHalfPanels : 1),
        box_tokens_(min(1 << params.page_size_log2, V::kTileKv)),
        waits_(params.prefetch_kv != 0) {}

  __device__ __forceinline__ void load(const Work& work, const Part& part) {
    kv_head_ = work.first_head / params_.num_heads_per_kv;
    pages_.begin(params_, work, part, work.tile_begin * V::kTileKv);
    const int first_new_key = work.first_position - work.first_token;
    for (int tile = work.tile_begin; tile < work.tile_end; ++tile) {
      if (waits_ && (tile + 1) * V::kTileKv > first_new_key) {
        wait_for_preceding_kernel();
        waits_ = false;
      }
      load_tile(tile);
      ++count_;
    }
  }

 private:
  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x) % 32; }

  __device__ __forceinline__ void load_tile(int tile) {
    const int first_key = tile * V::kTileKv;
    const int stage = static_cast<int>(count_ % 2);
    const int panel = lane() % panels_;
    const int slot = lane() / panels_;
    pages_.go_to(first_key);
    const int page = pages_.number_of(first_key + slot * box_tokens_);
    const bool reads = slot * box_tokens_ < V::kTileKv && page >= 0;
    const unsigned readers = __ballot_sync(0xffffffffU, reads);
    const auto bytes = static_cast<std::uint32_t>(__popc(readers) * box_tokens_ * 128);
    const std::uint32_t full = barriers_.full(stage, piece_);
    const int column = piece_ * V::kHalfPanels + panel;
    const std::uint32_t to =
        stages_ + static_cast<std::uint32_t>(stage * V::kStageBytes + column * V::kPanelBytes +
                                             slot * box_tokens_ * 128);
    // Everything else is ready by now: others wait for what comes into the stage.
    wait_barrier(barriers_.empty(stage, piece_), count_ / 2 % 2 ^ 1U);
    if (lane() == 0) arrive_expecting(full, bytes);
    __syncwarp();
    const int token = first_key & ((1 << params_.page_size_log2) - 1);
    if (reads) copy_box(to, &params_.k_map, full, token, column, kv_head_, page);
  }

  const CubistDecodeParams& params_;
  const std::uint32_t stages_;
  const MlaBarriers barriers_;
  const int piece_;
  const int panels_;
  const int box_tokens_;
  bool waits_;               // the preceding kernel's writes are not known to be visible yet
  std::uint32_t count_ = 0;  // tiles so far
  MlaPages pages_;
  int kv_head_ = 0;
};

/// The producer warp that brings a part's rows of Q, all panels but the last: boxes of
/// num_heads_per_cta heads of num_tokens_per_cta_q tokens. Rows beyond the tensor become zero;
/// those of another sequence's tokens are spare, like those that no box fills.
template <class V>
class MlaQueryLoader {
 public:
  __device__ __forceinline__ MlaQueryLoader(const CubistDecodeParams& params, std::uint32_t q,
                                            MlaBarriers barriers)
      : params_(params), q_(q), barriers_(barriers) {}

  __device__ __forceinline__ void load(const Work& work) {
    wait_barrier(barriers_.q_empty(), parity_ ^ 1U);
    parity_ ^= 1U;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) {
      const int rows = params_.num_heads_per_cta * params_.num_tokens_per_cta_q;
      arrive_expecting(barriers_.q_full(),
                       static_cast<std::uint32_t>(2 * V::kHalfPanels * rows * 128));
    }
    __syncwarp();
    if (lane < 2 * V::kHalfPanels) {
      copy_box(q_ + static_cast<std::uint32_t>(lane * V::kPanelBytes), &params_.q_map,
               barriers_.q_full(), work.first_head, static_cast<int>(work.q_row) + work.first_token,
               lane, 0);
    }
  }

 private:
  const CubistDecodeParams& params_;
  const std::uint32_t q_;
  const MlaBarriers barriers_;
  std::uint32_t parity_ = 0;
};

}  // namespace cubist_decode
