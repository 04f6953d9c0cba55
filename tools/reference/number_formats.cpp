#include "reference/number_formats.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace cubist {
namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
};

Format format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return {8, 7, 127};
    case Dtype::kFp16:
      return {5, 10, 15};
    case Dtype::kE4m3:
      return {4, 3, 7};
    case Dtype::kE2m1:
      return {2, 1, 1};
    default:
      std::abort();  // no other type is a kernel's input or output
  }
}

}  // namespace

// sign | exponent | mantissa, as IEEE 754 has it; e4m3 has no infinity and one NaN a sign, all
// ones; e2m1 has neither.
float decode_number(Dtype dtype, std::uint16_t bits) {
  const Format format = format_of(dtype);
  const int mantissa = bits & ((1 << format.mantissa_bits) - 1);
  const int exponent = (bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const int negative = (bits >> (format.mantissa_bits + format.exponent_bits)) & 1;
  const bool top = exponent == (1 << format.exponent_bits) - 1 && dtype != Dtype::kE2m1;
  double value = 0.0;
  if (top && dtype == Dtype::kE4m3 && mantissa == 7) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (top && dtype != Dtype::kE4m3) {
    value = mantissa == 0 ? std::numeric_limits<double>::infinity()
                          : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - format.bias - format.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1 << format.mantissa_bits),
                       exponent - format.bias - format.mantissa_bits);
  }
  return static_cast<float>(negative != 0 ? -value : value);
}

std::uint16_t encode_number(Dtype dtype, float value) {
  const Format format = format_of(dtype);
  const int sign_shift = format.mantissa_bits + format.exponent_bits;
  const int all_ones = (1 << sign_shift) - 1;
  const int sign = std::signbit(value) ? 1 << sign_shift : 0;
  if (std::isnan(value)) {
    return static_cast<std::uint16_t>(dtype == Dtype::kE2m1 ? 0 : sign | all_ones);
  }
  const double magnitude = std::fabs(static_cast<double>(value));
  const int largest = dtype == Dtype::kE2m1   ? all_ones
                      : dtype == Dtype::kE4m3 ? all_ones - 1
                                              : all_ones - (1 << format.mantissa_bits) + 1;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | largest);
  // Patterns of positive numbers are in the numbers' order, and evenly spaced within an exponent.
  if (magnitude == 0.0) return static_cast<std::uint16_t>(sign);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  const int biased = std::max(exponent - 1 + format.bias, 1);
  const double steps =
      std::nearbyint(std::ldexp(magnitude, format.mantissa_bits + format.bias - biased));
  const double pattern = steps + static_cast<double>((biased - 1) << format.mantissa_bits);
  return static_cast<std::uint16_t>(sign | static_cast<int>(std::min<double>(pattern, largest)));
}

double spacing_of(Dtype dtype) { return std::ldexp(1.0, -format_of(dtype).mantissa_bits); }

}  // namespace cubist
