#pragma once

#include <cstdint>

#include "work.cuh"

/// How the keys of a whole batch are dealt out evenly. The tiles of all sequences, one after the
/// other, are cut into as many equal ranges as there are groups of CTAs; in a group each CTA walks
/// the same range for one column: one KV head's rows of one query CTA.
///
/// grid  x = columns (q CTA fastest, then head tile, then KV head), y = groups
///
///   tiles    |  sequence 0  | 1 |     sequence 2     |  3  |
///   groups   |     0     |     1     |     2     |     3   |
namespace cubist_decode {

/// One CTA's part of a sequence, beside the Work that says which rows and tiles.
struct Part {
  bool is_whole;       ///< no other CTA has tiles of these rows
  bool has_beginning;  ///< it holds the first of their tiles
  bool is_last;        ///< the CTA has nothing to do after it
  int first_group;     ///< where not whole: groups [first_group, last_group] have parts
  int last_group;
  int batch;
};

/// Tiles that the schedule counts for these rows: one where they see no key, so that somebody
/// writes their output.
__device__ __forceinline__ int scheduled_tiles(const Work& work, int tile_kv) {
  return max(num_tiles_of(work, tile_kv), 1);
}

/// Walks one CTA's range. Every warp of the CTA has one and sees the same parts; all 32 lanes call.
class StreamSchedule {
 public:
  __device__ __forceinline__ StreamSchedule(const CubistDecodeParams& params, int tile_kv)
      : params_(params),
        tile_kv_(tile_kv),
        q_cta_(static_cast<int>(blockIdx.x) % params.num_ctas_q),
        head_block_(static_cast<int>(blockIdx.x) / params.num_ctas_q) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int base = 0; base < params.batch; base += 32) {
      total_ += __reduce_add_sync(0xffffffffU, static_cast<unsigned>(tiles_of(base + lane)));
    }
    // With more groups than tiles a sequence would have groups without a part of it.
    groups_ = total_ < gridDim.y ? static_cast<unsigned>(total_) : gridDim.y;
    if (blockIdx.y >= groups_) return;
    position_ = total_ * blockIdx.y / groups_;
    end_ = total_ * (blockIdx.y + 1) / groups_;
    seek(lane);
  }

  /// The next part; false: no more.
  __device__ __forceinline__ bool next(Work& work, Part& part) {
    while (position_ < end_) {
      const bool has_rows = describe_rows(params_, batch_, q_cta_, head_block_, work);
      const std::uint64_t item_end =
          item_begin_ + static_cast<unsigned>(has_rows ? scheduled_tiles(work, tile_kv_) : 0);
      if (item_end <= position_) {
        ++batch_;
        item_begin_ = item_end;
        continue;
      }
      const std::uint64_t part_end = item_end < end_ ? item_end : end_;
      const int first_tile = work.key_begin / tile_kv_;
      const int num_tiles = num_tiles_of(work, tile_kv_);
      work.tile_begin = first_tile + min(static_cast<int>(position_ - item_begin_), num_tiles);
      work.tile_end = first_tile + min(static_cast<int>(part_end - item_begin_), num_tiles);
      part.batch = batch_;
      part.has_beginning = position_ == item_begin_;
      part.is_whole = part.has_beginning && part_end == item_end;
      if (!part.is_whole) {
        part.first_group = group_of(item_begin_);
        part.last_group = group_of(item_end - 1);
      }
      position_ = part_end;
      part.is_last = position_ == end_;
      return true;
    }
    return false;
  }

 private:
  __device__ __forceinline__ int tiles_of(int batch) const {
    Work work;
    if (batch >= params_.batch || !describe_rows(params_, batch, q_cta_, head_block_, work)) {
      return 0;
    }
    return scheduled_tiles(work, tile_kv_);
  }

  /// The group whose range holds a tile: the only j with j total / groups <= tile < (j + 1) ...
  __device__ __forceinline__ int group_of(std::uint64_t tile) const {
    return static_cast<int>(((tile + 1) * groups_ - 1) / total_);
  }

  /// Finds the sequence that holds position_.
  __device__ __forceinline__ void seek(int lane) {
    std::uint64_t before = 0;
    for (int base = 0; base < params_.batch; base += 32) {
      const auto own = static_cast<unsigned>(tiles_of(base + lane));
      unsigned sum = own;
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const unsigned other = __shfl_up_sync(0xffffffffU, sum, distance);
        if (lane >= distance) sum += other;
      }
      const unsigned past = __ballot_sync(0xffffffffU, before + sum > position_);
      if (past != 0) {
        const int found = __ffs(static_cast<int>(past)) - 1;
        batch_ = base + found;
        item_begin_ = before + __shfl_sync(0xffffffffU, sum - own, found);
        return;
      }
      before += __shfl_sync(0xffffffffU, sum, 31);
    }
  }

  const CubistDecodeParams& params_;
  const int tile_kv_;
  const int q_cta_;
  const int head_block_;
  std::uint64_t total_ = 0;
  unsigned groups_ = 0;  // of CTAs, none of them without tiles
  std::uint64_t position_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t item_begin_ = 0;
  int batch_ = 0;
};

}  // namespace cubist_decode
