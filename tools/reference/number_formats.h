#pragma once

#include <cstdint>

#include "model/dtype.h"

namespace cubist {

/// The number a bf16, fp16, e4m3 or e2m1 bit pattern stands for.
float decode_number(Dtype dtype, std::uint16_t bits);

/// The nearest bit pattern, ties to even; e4m3 saturates at 448, e2m1 at 6. NaN stays NaN, but is 0
/// in e2m1.
std::uint16_t encode_number(Dtype dtype, float value);

/// The nearest number the type can hold.
inline float round_to(Dtype dtype, float value) {
  return decode_number(dtype, encode_number(dtype, value));
}

/// Distance of 1 and the next larger number: 2^-7, 2^-10, 2^-3, 2^-1.
double spacing_of(Dtype dtype);

}  // namespace cubist
