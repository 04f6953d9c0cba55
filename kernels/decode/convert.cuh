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

}  // namespace cubist_decode
