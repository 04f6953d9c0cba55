#pragma once

#include <cstdint>

#include "mla_output.cuh"
#include "mla_variant.h"
#include "ptx.cuh"
#include "stream_join.cuh"

/// Joins the parts of a sequence that several CTAs have, when the last is ready, in slices of
/// columns that whoever is there takes in turn: one CTA alone would read for longer than it reads
/// keys. Nobody has to be there: a CTA that has other work leaves at once, one without waits a
/// little, and the one that comes last takes what is left. A slice's parts are added in the order
/// of their keys: the same bits in every launch, whoever joins.
namespace cubist_decode {

template <class V>
class MlaJoin {
 public:
  /// told  two ints of shared memory that are this consumer's own
  __device__ __forceinline__ MlaJoin(const CubistDecodeParams& params, const Work& work,
                                     const Part& part, ConsumerRows rows, int consumer, int* told)
      : params_(params),
        work_(work),
        part_(part),
        rows_(rows),
        consumer_(consumer),
        told_(told),
        counters_(
            params.counters +
            ((static_cast<std::int64_t>(part.batch) * gridDim.x + blockIdx.x) * V::kConsumers +
             consumer) *
                kCounters) {}

  /// Puts this CTA's part where the others find it.
  __device__ __forceinline__ void share(const StreamSums<V>& sums, bool has_rows) const {
    if (!has_rows) return;
    float4* to =
        partial_sums<V>(params_, static_cast<int>(blockIdx.y), part_.has_beginning, consumer_);
#pragma unroll
    for (int i = 0; i < V::kHeadDim / 8; ++i) {
      __stcg(to + i * 128, make_float4(sums.values[4 * i], sums.values[4 * i + 1],
                                       sums.values[4 * i + 2], sums.values[4 * i + 3]));
    }
    __stcg(to + V::kHeadDim / 8 * 128, stats_of(sums));
  }

  /// Joins and writes slices, as long as there are any. All of the consumer's threads call.
  __device__ __forceinline__ void help(float output_scale, bool has_rows) const {
    const bool leads = threadIdx.x % 128 == 0;
    sync_named(1 + consumer_, 128);
    int before = 0;
    if (leads) {
      const bool stays = arrive_and_wait();
      before = add_relaxed(counters_ + kClaimed, stays ? 1 : kLeft);
      told_[0] = stays ? before % kLeft : kSlices;
    }
    for (int round = 0;; ++round) {
      sync_named(1 + consumer_, 128);
      const int slice = told_[round % 2];
      if (slice >= kSlices) break;
      // A next one of its fair share is asked for ahead, so that the answer is there in time.
      const bool asks_ahead = num_parts() * (round + 2) <= kSlices;
      if (leads && asks_ahead) before = add_relaxed(counters_ + kClaimed, 1);
      if (has_rows) join_slice(slice, output_scale);
      if (leads && !asks_ahead) before = add_relaxed(counters_ + kClaimed, 1);
      if (leads) told_[(round + 1) % 2] = before % kLeft;
    }
    if (leads && before % kLeft - kSlices + before / kLeft == num_parts() - 1) {
      counters_[kArrived] = counters_[kClaimed] = 0;
    }
  }

 private:
  static constexpr int kArrived = 0;
  // Slices that were taken, and 2^16 times the CTAs that did not stay for them. Who stays takes one
  // slice more than there are, and is then gone too.
  static constexpr int kClaimed = 1;
  static constexpr int kLeft = 1 << 16;
  static constexpr int kCounters = 4;
  static constexpr int kSlices = 4;
  static constexpr int kSliceBlocks = V::kHeadDim / 8 / kSlices;
  // About 20 microseconds: by then a part that began with this one has come, or will not soon.
  static constexpr long long kPatience = 32768;

  __device__ __forceinline__ int num_parts() const {
    return part_.last_group - part_.first_group + 1;
  }

  /// True: all parts are there.
  __device__ __forceinline__ bool arrive_and_wait() const {
    if (add_acquire_release(counters_ + kArrived, 1) == num_parts() - 1) return true;
    if (!part_.is_last) return false;
    const long long begin = clock64();
    while (load_acquire(counters_ + kArrived) < num_parts()) {
      if (clock64() - begin > kPatience) return false;
    }
    return true;
  }

  __device__ __forceinline__ const float4* part_of(int group) const {
    return partial_sums<V>(params_, group, group == part_.first_group, consumer_);
  }

  __device__ __forceinline__ void join_slice(int slice, float output_scale) const {
    Softmax softmax[2] = {{-INFINITY, 0.0F}, {-INFINITY, 0.0F}};
    for (int group = part_.first_group; group <= part_.last_group; ++group) {
      const float4 stats = __ldcg(part_of(group) + V::kHeadDim / 8 * 128);
      softmax[0] = joined(softmax[0], {stats.x, stats.y});
      softmax[1] = joined(softmax[1], {stats.z, stats.w});
    }
    float values[4 * kSliceBlocks] = {};
#pragma unroll 2
    for (int group = part_.first_group; group <= part_.last_group; ++group) {
      const float4* from = part_of(group);
      const float4 stats = __ldcg(from + V::kHeadDim / 8 * 128);
      const float weight[2] = {weight_of(stats.x, softmax[0].maximum),
                               weight_of(stats.z, softmax[1].maximum)};
#pragma unroll
      for (int i = 0; i < kSliceBlocks; ++i) {
        const float4 four = __ldcg(from + (slice * kSliceBlocks + i) * 128);
        values[4 * i] = fmaf(four.x, weight[0], values[4 * i]);
        values[4 * i + 1] = fmaf(four.y, weight[0], values[4 * i + 1]);
        values[4 * i + 2] = fmaf(four.z, weight[1], values[4 * i + 2]);
        values[4 * i + 3] = fmaf(four.w, weight[1], values[4 * i + 3]);
      }
    }
    const int first_column = consumer_ * V::kHeadDim + slice * kSliceBlocks * 8;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      write_columns<V, kSliceBlocks>(params_, work_, rows_, r, softmax[r], values, output_scale,
                                     first_column);
    }
  }

  static __device__ __forceinline__ Softmax joined(Softmax a, Softmax b) {
    const float maximum = fmaxf(a.maximum, b.maximum);
    return {maximum, a.sum * weight_of(a.maximum, maximum) + b.sum * weight_of(b.maximum, maximum)};
  }

  const CubistDecodeParams& params_;
  const Work& work_;
  const Part& part_;
  const ConsumerRows rows_;
  const int consumer_;
  int* const told_;
  std::int32_t* const counters_;
};

}  // namespace cubist_decode
