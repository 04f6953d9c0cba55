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

template <Type kType>
__device__ __forceinline__ uint4 pack_eight(const float (&values)[8]) {
  return make_uint4(pack<kType>(values[0], values[1]), pack<kType>(values[2], values[3]),
                    pack<kType>(values[4], values[5]), pack<kType>(values[6], values[7]));
}

/// Where the block scale of (row, column) of an nvfp4 output lies: launcher/nvfp4_output.h. A row
/// has a multiple of four scales, since a head has at least 64 elements.
__device__ __forceinline__ std::int64_t block_scale_offset(std::int64_t row, int column,
                                                           int columns) {
  return (row / 128 * (columns / 4) + column / 4) * 512 + row % 32 * 16 + row % 128 / 32 * 4 +
         column % 4;
}

/// Eight columns as nvfp4, and, of every 16, one block scale: of the largest magnitude among them,
/// a sixth. Neighbouring lanes have the halves of a block.
__device__ __forceinline__ void write_nvfp4(const CubistDecodeParams& params, std::int64_t token,
                                            int head, int head_dim, int column,
                                            std::int64_t element, const float (&values)[8]) {
  const CubistStaticDecodeParams& fixed = params.fixed;
  float largest = 0.0F;
#pragma unroll
  for (int i = 0; i < 8; ++i) largest = max_magnitude(largest, values[i]);
  const unsigned pair = 3U << (threadIdx.x % 32 & ~1U);
  largest = max_magnitude(largest, __shfl_xor_sync(pair, largest, 1));
  const std::uint32_t scale = pack_e4m3(fixed.o_sf_scale * largest * (1.0F / 6.0F), 0.0F);
  const float up =
      scale == 0 ? 0.0F
                 : __fdividef(fixed.o_sf_scale, unpack<Type::kFp16>(e4m3_pair_to_fp16(scale)).x);
  std::uint32_t packed = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) packed |= e2m1_of(values[i] * up) << (4 * i);
  *reinterpret_cast<std::uint32_t*>(static_cast<unsigned char*>(params.o) + element / 2) = packed;
  if (column % 16 == 0) {
    const int per_head = head_dim / 16;
    static_cast<unsigned char*>(fixed.o_sf)[block_scale_offset(
        token + fixed.o_sf_start_index, head * per_head + column / 16,
        params.num_q_heads * per_head)] = static_cast<unsigned char>(scale);
  }
}

/// Writes eight columns of one row of O from unnormalised sums, and, with the first of them, its
/// LSE. What O holds is read at run time.
template <class V>
__device__ __forceinline__ void write_row(const CubistDecodeParams& params, const Work& work,
                                          Row row, int column, const float (&sums)[8],
                                          Softmax softmax, float output_scale) {
  const RowScale scale = scale_of_row(params, row.head, softmax, output_scale);
  const std::int64_t token = work.q_row + work.first_token + row.token;
  const std::int64_t element =
      token * params.o_stride_tokens + row.head * params.o_stride_heads + column;
  float values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = sums[i] * scale.factor;
  auto* halves = static_cast<std::uint16_t*>(params.o) + element;
  switch (params.fixed.dtype_o) {
    case kCubistDecodeOutputBf16:
      *reinterpret_cast<uint4*>(halves) = pack_eight<Type::kBf16>(values);
      break;
    case kCubistDecodeOutputFp16:
      *reinterpret_cast<uint4*>(halves) = pack_eight<Type::kFp16>(values);
      break;
    case kCubistDecodeOutputE4m3:
      *reinterpret_cast<uint2*>(static_cast<unsigned char*>(params.o) + element) =
          make_uint2(pack_e4m3(values[0], values[1]) | pack_e4m3(values[2], values[3]) << 16,
                     pack_e4m3(values[4], values[5]) | pack_e4m3(values[6], values[7]) << 16);
      break;
    default:
      write_nvfp4(params, token, row.head, V::kHeadDim, column, element, values);
      break;
  }
  if (params.lse != nullptr && column == 0) {
    params.lse[token * params.num_q_heads + row.head] = lse_of(scale.softmax);
  }
}

}  // namespace cubist_decode
