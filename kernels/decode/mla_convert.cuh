#pragma once

#include <cstdint>

#include "convert.cuh"
#include "mla_load.cuh"
#include "mla_variant.h"
#include "ptx.cuh"
#include "stream_ptx.cuh"
#include "stream_work.cuh"

namespace cubist_decode {

/// Eight elements of e4m3 as bf16, which holds them exactly.
__device__ __forceinline__ uint4 e4m3_to_bf16(std::uint32_t low, std::uint32_t high) {
  const auto two = [](std::uint32_t fp16) {
    const float2 pair = unpack<Type::kFp16>(fp16);
    return pack<Type::kBf16>(pair.x, pair.y);
  };
  return make_uint4(two(e4m3_pair_to_fp16(low)), two(e4m3_high_pair_to_fp16(low)),
                    two(e4m3_pair_to_fp16(high)), two(e4m3_high_pair_to_fp16(high)));
}

/// The producer warpgroup of an e4m3 cache: copies keys as bytes into a stage and makes bf16 of
/// them there, as the consumers of a bf16 cache find it. A thread has 16 elements of a key at a
/// time: their bytes land where the first eight will be, and it alone touches these two places. All
/// four warps have a share of every piece, and are up to three pieces ahead with copying. What is
/// read, and when, is as in MlaTileLoader; keys outside of the sequence's become 0.
template <class V>
class MlaConvertingLoader {
 public:
  __device__ __forceinline__ MlaConvertingLoader(const CubistDecodeParams& params,
                                                 unsigned char* stages, MlaBarriers barriers)
      : params_(params), stages_(stages), barriers_(barriers), waits_(params.prefetch_kv != 0) {}

  __device__ __forceinline__ void load(const Work& work, const Part& part) {
    keys_ = static_cast<const unsigned char*>(params_.k) +
            work.first_head / params_.num_heads_per_kv * params_.k_stride_heads;
    pages_.begin(params_, work, part, work.tile_begin * V::kTileKv);
    first_new_key_ = work.first_position - work.first_token;
    first_tile_ = work.tile_begin;
    key_begin_ = work.key_begin;
    num_keys_ = static_cast<unsigned>(work.key_end - work.key_begin);
    const int pieces = kPieces * (work.tile_end - work.tile_begin);
    int copied = 0;
    for (int n = 0; n < pieces; ++n) {
      // Waits for a place only where nothing is left to convert: consumers may need that first.
      if (copied == n) copy(copied++);
      wait_for_all_but(copied - n - 1);
      convert(n);
      while (copied < pieces && copied <= n + 1 + kAhead && is_empty(copied)) copy(copied++);
    }
    count_ += static_cast<std::uint32_t>(work.tile_end - work.tile_begin);
  }

 private:
  static constexpr int kPieces = 3;  // of a tile: its owner's half, the other's, the rest
  static constexpr int kAhead = 2;

  /// Where a thread's elements of a piece lie: `rounds` keys, `keys` apart, from `key` on.
  struct Place {
    int stage;
    int piece;  ///< of MlaBarriers
    std::uint32_t parity;
    int rounds;
    int key;
    int keys;
    int column;            ///< of a key, in elements or bytes
    unsigned char* first;  ///< the first eight elements of the first key; the next eight: ^ 16
  };

  __device__ __forceinline__ Place place_of(int n) const {
    const int thread = static_cast<int>(threadIdx.x) % 128;
    const std::uint32_t count = count_ + static_cast<std::uint32_t>(n / kPieces);
    const int turn = n % kPieces;
    const bool is_half = turn < 2;
    Place place;
    place.stage = static_cast<int>(count % 2);
    place.piece = is_half ? (place.stage + turn) % 2 : 2;
    place.parity = count / 2 % 2;
    // Eight threads that access shared memory together have four chunks of two keys: all banks.
    place.rounds = is_half ? 8 : 2;
    place.keys = is_half ? 8 : 32;
    place.key = is_half ? thread / 32 * 2 + thread / 4 % 2 : thread / 4;
    const int chunk = is_half ? thread / 8 % 4 * 4 + thread % 4 : thread % 4;
    place.column = place.piece * V::kHeadDim + chunk * 16;
    place.first = stages_ + place.stage * V::kStageBytes + place.piece * V::kHalfBytes +
                  chunk / 4 * V::kPanelBytes + place.key * 128 +
                  ((chunk % 4 * 2) ^ (place.key % 8)) * 16;
    return place;
  }

  __device__ __forceinline__ bool is_empty(int n) const {
    const Place place = place_of(n);
    return __all_sync(0xffffffffU,
                      test_barrier(barriers_.empty(place.stage, place.piece), place.parity ^ 1U));
  }

  __device__ __forceinline__ void copy(int n) {
    const Place place = place_of(n);
    const int first_key = (first_tile_ + n / kPieces) * V::kTileKv;
    if (waits_ && first_key + V::kTileKv > first_new_key_) {
      wait_for_preceding_kernel();
      waits_ = false;
    }
    pages_.go_to(first_key);
    wait_barrier(barriers_.empty(place.stage, place.piece), place.parity ^ 1U);
    const std::uint32_t to = shared_address(place.first);
    const auto apart = static_cast<std::uint32_t>(place.keys * 128);
    if (V::kTileKv >> params_.page_size_log2 <= 1) {  // one page
      const std::int64_t page = pages_.number_of(first_key);
      const unsigned char* from = address(page, first_key + place.key) + place.column;
      const std::int64_t step = place.keys * params_.k_stride_tokens;
#pragma unroll 4
      for (int i = 0; i < place.rounds; ++i) {
        const bool valid = page >= 0 && is_seen(first_key + place.key + i * place.keys);
        copy_async_16(to + i * apart, valid ? from : keys_, valid);
        from += step;
      }
    } else {
#pragma unroll 2
      for (int i = 0; i < place.rounds; ++i) {
        const int key = first_key + place.key + i * place.keys;
        const std::int64_t page = pages_.number_of(key);
        const bool valid = page >= 0 && is_seen(key);
        copy_async_16(to + i * apart, valid ? address(page, key) + place.column : keys_, valid);
      }
    }
    commit_copies();
  }

  __device__ __forceinline__ bool is_seen(int key) const {
    return static_cast<unsigned>(key - key_begin_) < num_keys_;
  }
  __device__ __forceinline__ const unsigned char* address(std::int64_t page, int key) const {
    const int token = key & ((1 << params_.page_size_log2) - 1);
    return keys_ + page * params_.k_stride_pages + token * params_.k_stride_tokens;
  }

  static __device__ __forceinline__ void wait_for_all_but(int newest) {
    static_assert(kAhead == 2);
    if (newest == 0) {
      wait_for_copies<0>();
    } else if (newest == 1) {
      wait_for_copies<1>();
    } else {
      wait_for_copies<2>();
    }
  }

  __device__ __forceinline__ void convert(int n) const {
    const Place place = place_of(n);
#pragma unroll 4
    for (int i = 0; i < place.rounds; ++i) {
      unsigned char* low = place.first + i * place.keys * 128;
      auto* high = reinterpret_cast<uint4*>(reinterpret_cast<std::uintptr_t>(low) ^ 16);
      const uint4 bytes = *reinterpret_cast<const uint4*>(low);
      *reinterpret_cast<uint4*>(low) = e4m3_to_bf16(bytes.x, bytes.y);
      *high = e4m3_to_bf16(bytes.z, bytes.w);
    }
    fence_async_proxy();
    __syncwarp();
    if (threadIdx.x % 32 == 0) arrive(barriers_.full(place.stage, place.piece));
  }

  const CubistDecodeParams& params_;
  unsigned char* const stages_;
  const MlaBarriers barriers_;
  bool waits_;               // the preceding kernel's writes are not known to be visible yet
  std::uint32_t count_ = 0;  // tiles before this part
  const unsigned char* keys_ = nullptr;
  MlaPages pages_;
  int first_new_key_ = 0;
  int first_tile_ = 0;
  int key_begin_ = 0;
  unsigned num_keys_ = 0;
};

}  // namespace cubist_decode
