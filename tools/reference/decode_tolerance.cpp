#include "reference/decode_tolerance.h"

#include <cmath>

#include "reference/number_formats.h"

namespace cubist {

namespace {

bool has_fp16_probabilities(Dtype dtype_kv) {
  return dtype_kv == Dtype::kE4m3 || dtype_kv == Dtype::kFp16;
}

/// What probabilities lose, before the quarter.
double probability_rounding(Dtype dtype_kv) {
  return spacing_of(has_fp16_probabilities(dtype_kv) ? Dtype::kFp16 : Dtype::kBf16) / 2.0;
}
double lost_probabilities(Dtype dtype_kv, const DecodeAnswer& answer, std::size_t element) {
  return has_fp16_probabilities(dtype_kv) ? 0x1p-24 * answer.largest_magnitude[element] : 0.0;
}

}  // namespace

double decode_tolerance(Dtype dtype_o, Dtype dtype_kv, const DecodeAnswer& answer,
                        std::size_t element) {
  const double p = probability_rounding(dtype_kv);
  const double r = spacing_of(dtype_o) / 2.0;
  const double u = dtype_o == Dtype::kFp16 ? 0x1p-25 : dtype_o == Dtype::kE4m3 ? 0x1p-10 : 0.0;
  return 1.25 * (p * answer.magnitude[element] + r * std::fabs(answer.o[element])) +
         lost_probabilities(dtype_kv, answer, element) + u;
}

double unrounded_tolerance(Dtype dtype_kv, const DecodeAnswer& answer, std::size_t element) {
  return 1.25 * probability_rounding(dtype_kv) * answer.magnitude[element] +
         lost_probabilities(dtype_kv, answer, element) + 0x1p-20 * std::fabs(answer.o[element]);
}

double lse_tolerance(double lse) { return 3e-4 + 1e-5 * std::fabs(lse); }

}  // namespace cubist
