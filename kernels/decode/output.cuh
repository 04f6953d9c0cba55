#pragma once

#include <cstdint>

#include "convert.cuh"
#include "ptx.cuh"
#include "variant.h"
#include "work.cuh"

namespace cubist_decode {

/// The softmax of one row: every 2^score summed is relative to `maximum`.
struct Softmax {
  float maximum;  ///< in powers of two; -inf where no key was seen
  float sum;
};

/// 2^(maximum - reference): the weight of sums taken relative to `maximum`. 0 where nothing was
/// summed, which -inf - -inf would make NaN.
__device__ __forceinline__ float weight_of(float maximum, float reference) {
  return maximum == -INFINITY ? 0.0F : exp2_approx(maximum - reference);
}

/// Adds the sink of a head: a key without value, whose score is given in natural-log units and
/// unscaled.
__device__ __forceinline__ Softmax add_sink(Softmax softmax, float sink) {
  constexpr float kLog2E = 1.4426950408889634F;
  const float score = sink * kLog2E;
  const float maximum = fmaxf(softmax.maximum, score);
  return {maximum, softmax.sum * weight_of(softmax.maximum, maximum) + weight_of(score, maximum)};
}

/// Writes eight columns of one row of O from unnormalised sums, and, with the first of them, its
/// LSE: log2 of the sum over keys, and sink, of 2^score. A row without keys: 0 and -inf (or the
/// sink).
template <class V>
__device__ __forceinline__ void write_row(const CubistDecodeParams& params, const Work& work,
                                          Row row, int column, const float (&sums)[8],
                                          Softmax softmax, float output_scale) {
  const float keys_maximum = softmax.maximum;
  if (params.sinks != nullptr) softmax = add_sink(softmax, params.sinks[row.head]);
  const bool empty = softmax.sum == 0.0F;
  const float factor =
      empty ? 0.0F
            : __fdividef(weight_of(keys_maximum, softmax.maximum) * output_scale, softmax.sum);
  const std::int64_t token = work.q_row + work.first_token + row.token;
  uint4 eight;
  eight.x = pack<V::kQ>(sums[0] * factor, sums[1] * factor);
  eight.y = pack<V::kQ>(sums[2] * factor, sums[3] * factor);
  eight.z = pack<V::kQ>(sums[4] * factor, sums[5] * factor);
  eight.w = pack<V::kQ>(sums[6] * factor, sums[7] * factor);
  auto* o = static_cast<std::uint16_t*>(params.o) + token * params.o_stride_tokens +
            row.head * params.o_stride_heads + column;
  *reinterpret_cast<uint4*>(o) = eight;
  if (params.lse != nullptr && column == 0) {
    params.lse[token * params.num_q_heads + row.head] =
        empty ? -INFINITY : softmax.maximum + log2_approx(softmax.sum);
  }
}

}  // namespace cubist_decode
