#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "place.cuh"

/// Element types as bit patterns. Rounding is to nearest, ties to even. Instructions where there
/// are any, else the same in integers.
namespace cubist_aux {

enum class Element { kBf16, kFp16, kE4m3 };

/// 16-bit elements of a partial O whose final O has type kO.
template <Element kO>
inline constexpr Element kPartialOf = kO == Element::kBf16 ? Element::kBf16 : Element::kFp16;

CUBIST_AUX_FN std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}
CUBIST_AUX_FN float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

CUBIST_AUX_FN std::uint32_t bf16_from(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fffU;
  return (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
}

CUBIST_AUX_FN std::uint32_t fp16_from(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const float magnitude = float_of(bits & 0x7fffffffU);
  if (!(magnitude == magnitude)) return 0x7fffU;
  if (magnitude >= 65520.0F) return sign | 0x7c00U;
  // Below 2^-14 the unit is 2^-24; a result of 1024 units is the first normal number.
  if (magnitude < 6.103515625e-05F) {
    return sign | static_cast<std::uint32_t>(rintf(magnitude * 16777216.0F));
  }
  const std::uint32_t rounded = bits_of(magnitude) + 0xfffU + (bits >> 13 & 1U);
  return sign | ((rounded >> 13) - (112U << 10));
}

CUBIST_AUX_FN float float_from_fp16(std::uint32_t half) {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t rest = half & 0x7fffU;
  if (rest >= 0x7c00U) return float_of(sign | 0x7f800000U | (rest & 0x3ffU) << 13);
  if (rest < 0x400U) return float_of(sign | bits_of(static_cast<float>(rest) * 5.9604645e-08F));
  return float_of(sign | ((rest << 13) + (112U << 23)));
}

/// Saturates at 448; NaN stays NaN.
CUBIST_AUX_FN std::uint32_t e4m3_from(float value) {
  const std::uint32_t bits = bits_of(value);
  const std::uint32_t sign = bits >> 24 & 0x80U;
  const float magnitude = float_of(bits & 0x7fffffffU);
  if (!(magnitude == magnitude)) return 0x7fU;
  if (magnitude >= 448.0F) return sign | 0x7eU;
  // Below 2^-6 the unit is 2^-9; a result of 8 units is the first normal number.
  if (magnitude < 0.015625F) return sign | static_cast<std::uint32_t>(rintf(magnitude * 512.0F));
  const std::uint32_t rounded = bits_of(magnitude) + 0x7ffffU + (bits >> 20 & 1U);
  return sign | ((rounded >> 20) - (120U << 3));
}

/// Two 16-bit elements of a register as floats, the first in the low half.
template <Element kElement>
CUBIST_AUX_FN void unpack(std::uint32_t packed, float& low, float& high) {
  static_assert(kElement != Element::kE4m3, "partial results have 16-bit elements");
  if constexpr (kElement == Element::kBf16) {
    low = float_of(packed << 16);
    high = float_of(packed & 0xffff0000U);
  } else {
#ifdef __CUDA_ARCH__
    asm("{\n.reg .b16 a, b;\nmov.b32 {a, b}, %2;\ncvt.f32.f16 %0, a;\ncvt.f32.f16 %1, b;\n}"
        : "=f"(low), "=f"(high)
        : "r"(packed));
#else
    low = float_from_fp16(packed & 0xffffU);
    high = float_from_fp16(packed >> 16);
#endif
  }
}

/// Two elements, the first in the low half: of 16 bits each, or 8 for e4m3.
template <Element kElement>
CUBIST_AUX_FN std::uint32_t pack(float low, float high) {
#ifdef __CUDA_ARCH__
  std::uint32_t packed;
  if constexpr (kElement == Element::kBf16) {
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
  if constexpr (kElement == Element::kFp16) {
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
  }
#if __CUDA_ARCH__ >= 890
  if constexpr (kElement == Element::kE4m3) {
    std::uint16_t bytes;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bytes) : "f"(high), "f"(low));
    return bytes;
  }
#endif
#endif
  if constexpr (kElement == Element::kE4m3) return e4m3_from(low) | e4m3_from(high) << 8;
  if constexpr (kElement == Element::kFp16) return fp16_from(low) | fp16_from(high) << 16;
  return bf16_from(low) | bf16_from(high) << 16;
}

}  // namespace cubist_aux
