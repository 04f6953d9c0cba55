#pragma once

#include <cstdint>

#include "variant.h"

/// Element types as bit patterns: two 16-bit elements a register, the first in the low half.
namespace cubist_decode {

/// Rounds to nearest even.
template <Type kType>
__device__ __forceinline__ std::uint32_t pack(float low, float high) {
  std::uint32_t packed;
  if constexpr (kType == Type::kBf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  }
  return packed;
}

template <Type kType>
__device__ __forceinline__ float2 unpack(std::uint32_t packed) {
  float2 pair;
  if constexpr (kType == Type::kBf16) {
    pair.x = __uint_as_float(packed << 16);
    pair.y = __uint_as_float(packed & 0xffff0000U);
  } else {
    asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %2;\ncvt.f32.f16 %0, low;\n"
        "cvt.f32.f16 %1, high;\n}"
        : "=f"(pair.x), "=f"(pair.y)
        : "r"(packed));
  }
  return pair;
}

/// Bytes 0 and 1 of `pair` as two fp16 numbers. Exact: fp16 has more exponent and mantissa bits.
__device__ __forceinline__ std::uint32_t e4m3_pair_to_fp16(std::uint32_t pair) {
  std::uint32_t out;
#if __CUDA_ARCH__ >= 890
  asm("{\n.reg .b16 low, high;\nmov.b32 {low, high}, %1;\ncvt.rn.f16x2.e4m3x2 %0, low;\n}"
      : "=r"(out)
      : "r"(pair));
#else
  // Exponent and mantissa one place below fp16's sign are the number times 2^-8 (the biases differ
  // by eight), subnormals included; 0x7f is NaN.
  const std::uint32_t wide = __byte_perm(pair, 0, 0x1404);
  const std::uint32_t magnitude = (wide & 0x7f007f00U) >> 1;
  asm("mul.f16x2 %0, %1, %2;"
      : "=r"(out)
      : "r"((wide & 0x80008000U) | magnitude), "r"(0x5c005c00U));
  if ((magnitude & 0xffffU) == 0x3f80U) out |= 0x7fffU;
  if ((magnitude >> 16) == 0x3f80U) out |= 0x7fff0000U;
#endif
  return out;
}

/// The same for bytes 2 and 3.
__device__ __forceinline__ std::uint32_t e4m3_high_pair_to_fp16(std::uint32_t four) {
  return e4m3_pair_to_fp16(four >> 16);
}

/// e4m3 bit patterns, `low` in the low byte. Rounds to nearest even and saturates at 448; NaN
/// stays.
__device__ __forceinline__ std::uint32_t pack_e4m3(float low, float high) {
#if __CUDA_ARCH__ >= 890
  std::uint16_t bytes;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(high), "f"(low));
  return bytes;
#else
  const auto one = [](float value) -> std::uint32_t {
    const auto bits = static_cast<std::uint32_t>(__float_as_int(value));
    const std::uint32_t sign = bits >> 24 & 0x80U;
    const float magnitude = fabsf(value);
    if (!(magnitude == magnitude)) return 0x7fU;
    if (magnitude >= 448.0F) return sign | 0x7eU;
    // Below 2^-6 the unit is 2^-9; a result of 8 units is the first normal number.
    if (magnitude < 0x1p-6F) return sign | static_cast<std::uint32_t>(rintf(magnitude * 512.0F));
    const std::uint32_t rounded = (bits & 0x7fffffffU) + 0x7ffffU + (bits >> 20 & 1U);
    return sign | ((rounded >> 20) - (120U << 3));
  };
  return one(low) | one(high) << 8;
#endif
}

/// An e2m1 bit pattern: 0, 0.5, 1, 1.5, 2, 3, 4, 6 are 0 to 7, and 8 is the sign. Rounds to nearest
/// even and saturates; NaN is 0.
__device__ __forceinline__ std::uint32_t e2m1_of(float value) {
  const float m = fabsf(value);
  const int pattern = (m > 0.25F) + (m >= 0.75F) + (m > 1.25F) + (m >= 1.75F) + (m > 2.5F) +
                      (m >= 3.5F) + (m > 5.0F);
  return static_cast<std::uint32_t>(pattern) |
         (static_cast<std::uint32_t>(__float_as_int(value)) >> 28 & 8U);
}

/// The larger magnitude; NaN if one is.
__device__ __forceinline__ float max_magnitude(float a, float b) {
  float largest;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(fabsf(a)), "f"(fabsf(b)));
  return largest;
}

}  // namespace cubist_decode
