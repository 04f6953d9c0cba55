#pragma once

#include <cstdint>

#include "convert.cuh"
#include "ptx.cuh"
#include "swizzle.cuh"
#include "variant.h"
#include "work.cuh"

/// The rows of Q: from global memory through shared memory into the A operand of the MMA.
namespace cubist_decode {

/// Where K and V are e4m3 the MMA is in fp16, whose range is smaller than bf16's: each row of Q is
/// multiplied by the power of two that brings its largest element to [2^14, 2^15), and its scores
/// are divided by it again. `exponent_bits` are those of that largest element; 2^100 at most, so
/// that both powers are normal numbers; 1 for a row with Inf or NaN.
__device__ __forceinline__ int row_exponent(float largest) {
  const int exponent_bits = (__float_as_int(largest) >> 23) & 0xff;
  return exponent_bits == 0xff ? 0 : min(127 + 14 - exponent_bits, 100);
}
__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((exponent + 127) << 23);
}

/// Eight elements of one row, `kLanes` neighbouring lanes together the whole row: to scaled fp16.
/// Returns what the row's scores are to be multiplied by.
template <Type kTypeQ, int kLanes>
__device__ __forceinline__ float scale_to_fp16(uint4& eight) {
  std::uint32_t* words = &eight.x;
  float2 pairs[4];
  float largest = 0.0F;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    pairs[i] = unpack<kTypeQ>(words[i]);
    largest = fmaxf(largest, fmaxf(fabsf(pairs[i].x), fabsf(pairs[i].y)));
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2) {
    largest = fmaxf(largest, __shfl_xor_sync(0xffffffffU, largest, distance));
  }
  const int exponent = row_exponent(largest);
  const float up = power_of_two(exponent);
#pragma unroll
  for (int i = 0; i < 4; ++i) words[i] = pack<Type::kFp16>(pairs[i].x * up, pairs[i].y * up);
  return power_of_two(-exponent);
}

/// Eight elements of a row, from element `element` of Q: 16 bits each, e4m3 as fp16.
template <Type kTypeQ>
__device__ __forceinline__ uint4 load_eight(const void* q, std::int64_t element) {
  if constexpr (kTypeQ == Type::kE4m3) {
    const uint2 raw = *reinterpret_cast<const uint2*>(static_cast<const char*>(q) + element);
    return make_uint4(e4m3_pair_to_fp16(raw.x), e4m3_high_pair_to_fp16(raw.x),
                      e4m3_pair_to_fp16(raw.y), e4m3_high_pair_to_fp16(raw.y));
  } else {
    return *reinterpret_cast<const uint4*>(static_cast<const std::uint16_t*>(q) + element);
  }
}

/// Copies the CTA's rows of Q to shared memory; spare rows become zero. Call __syncthreads() before
/// reading them.
template <class V>
__device__ __forceinline__ void stage_query(const CubistDecodeParams& params, const Work& work,
                                            unsigned char* smem) {
  constexpr int kLanes = V::kHeadDim / 8;
  constexpr int kRowsAtOnce = 32 / kLanes;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int chunk = lane % kLanes;
  auto* row_scales = reinterpret_cast<float*>(smem + V::kScaleOffset);
  static_assert(V::kTileQ % (V::kWarps * kRowsAtOnce) == 0, "every warp has rows to load");
#pragma unroll 2
  for (int i = 0; i < V::kTileQ / (V::kWarps * kRowsAtOnce); ++i) {
    const int index = (i * V::kWarps + warp) * kRowsAtOnce + lane / kLanes;
    const Row row = row_of(work, index);
    uint4 eight = make_uint4(0, 0, 0, 0);
    if (row.valid) {
      const std::int64_t element =
          (work.q_row + work.first_token + row.token) * params.q_stride_tokens +
          row.head * params.q_stride_heads + chunk * 8;
      eight = load_eight<V::kQ>(params.q, element);
    }
    if constexpr (V::kScalesQ) {
      const float down = scale_to_fp16<V::kQ, kLanes>(eight);
      if (chunk == 0) row_scales[index] = down;
    }
    *reinterpret_cast<uint4*>(smem + V::kQOffset + swizzled<V::kHeadDim * 2>(index, chunk)) = eight;
  }
}

/// A operand of step `step` (16 elements of the head) for the 16 rows from `row_base`.
///
/// The order of a head's elements within a step is free as long as K has the same. With 16-bit K it
/// is memory order; with e4m3 K thread t of four holds elements 4t..4t+3, the four that ldmatrix
/// gives it of K in one register.
template <class V>
__device__ __forceinline__ void load_query_fragment(std::uint32_t (&a)[4],
                                                    const unsigned char* smem, int row_base,
                                                    int step) {
  constexpr int kRowBytes = V::kHeadDim * 2;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if constexpr (V::kConvertsKv) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row_base + lane / 4 + half * 8;
      const std::uint32_t offset = swizzled<kRowBytes>(row, 2 * step + lane % 4 / 2) +
                                   static_cast<std::uint32_t>(lane % 2 * 8);
      const uint2 four = *reinterpret_cast<const uint2*>(smem + V::kQOffset + offset);
      a[half] = four.x;
      a[half + 2] = four.y;
    }
  } else {
    const int row = row_base + lane % 16;
    load_matrices(
        a, shared_address(smem + V::kQOffset) + swizzled<kRowBytes>(row, 2 * step + lane / 16));
  }
}

}  // namespace cubist_decode
