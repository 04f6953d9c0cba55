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

/// A row's softmax with its head's sink, if there is one, and what its unnormalised sums are to be
/// multiplied by. `head` is read only where there are sinks.
struct RowScale {
  Softmax softmax;
  float factor;  ///< 0 for a row without keys
};
__device__ __forceinline__ RowScale scale_of_row(const CubistDecodeParams& params, int head,
                                                 Softmax softmax, float output_scale) {
  const float keys_maximum = softmax.maximum;
  if (params.sinks != nullptr) softmax = add_sink(softmax, params.sinks[head]);
  return {softmax,
          softmax.sum == 0.0F
              ? 0.0F
              : __fdividef(weight_of(keys_maximum, softmax.maximum) * output_scale, softmax.sum)};
}

/// log2 of the sum over keys, and sink, of 2^score; a row without either: -inf.
__device__ __forceinline__ float lse_of(Softmax softmax) {
  return softmax.sum == 0.0F ? -INFINITY : softmax.maximum + log2_approx(softmax.sum);
}

/// Writes eight columns of one row of O from unnormalised sums, and, with the first of them, its
/// LSE.
template <class V>
__device__ __forceinline__ void write_row(const CubistDecodeParams& params, const Work& work,
                                          Row row, int column, const float (&sums)[8],
                                          Softmax softmax, float output_scale) {
  const RowScale scale = scale_of_row(params, row.head, softmax, output_scale);
  const std::int64_t token = work.q_row + work.first_token + row.token;
  uint4 eight;
  eight.x = pack<V::kQ>(sums[0] * scale.factor, sums[1] * scale.factor);
  eight.y = pack<V::kQ>(sums[2] * scale.factor, sums[3] * scale.factor);
  eight.z = pack<V::kQ>(sums[4] * scale.factor, sums[5] * scale.factor);
  eight.w = pack<V::kQ>(sums[6] * scale.factor, sums[7] * scale.factor);
  auto* o = static_cast<std::uint16_t*>(params.o) + token * params.o_stride_tokens +
            row.head * params.o_stride_heads + column;
  *reinterpret_cast<uint4*>(o) = eight;
  if (params.lse != nullptr && column == 0) {
    params.lse[token * params.num_q_heads + row.head] = lse_of(scale.softmax);
  }
}

}  // namespace cubist_decode
