#include "reference/decode_tolerance.h"

#include <cmath>

#include "reference/number_formats.h"

namespace cubist {

double decode_tolerance(Dtype dtype_q, Dtype dtype_kv, const DecodeAnswer& answer,
                        std::size_t element) {
  const bool fp16 = dtype_kv == Dtype::kE4m3 || dtype_kv == Dtype::kFp16;
  const double p = spacing_of(fp16 ? Dtype::kFp16 : Dtype::kBf16) / 2.0;
  const double r = spacing_of(dtype_q) / 2.0;
  const double lost = fp16 ? 0x1p-24 * answer.largest_magnitude[element] : 0.0;
  const double u = dtype_q == Dtype::kFp16 ? 0x1p-25 : 0.0;
  return 1.25 * (p * answer.magnitude[element] + r * std::fabs(answer.o[element])) + lost + u;
}

double lse_tolerance(double lse) { return 3e-4 + 1e-5 * std::fabs(lse); }

}  // namespace cubist
