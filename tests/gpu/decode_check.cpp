#include "gpu/decode_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/decode_tolerance.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

constexpr std::uint16_t kPoison = 0xffff;

void note(DecodeErrors& errors, std::string failure) {
  if (errors.failure.empty()) errors.failure = std::move(failure);
}

/// Marks what a row may write, and compares it.
void check_row(const DecodeVariant& variant, const DecodeCase& problem, const DecodeAnswer& answer,
               const DecodeOutput& output, std::size_t row, std::vector<bool>& owned,
               DecodeErrors& errors) {
  const auto heads = static_cast<std::size_t>(problem.problem.num_q_heads);
  const auto head_dim = static_cast<std::size_t>(problem.problem.head_dim_vo);
  const std::size_t at = row / heads * static_cast<std::size_t>(problem.o_stride_tokens) +
                         row % heads * static_cast<std::size_t>(problem.o_stride_heads);
  for (std::size_t i = 0; i < head_dim; ++i) {
    owned[at + i] = true;
    const double value = answer.o[row * head_dim + i];
    const auto found = static_cast<double>(decode_number(variant.dtype_q, output.o[at + i]));
    const double error = std::fabs(found - value);
    const double tolerance =
        decode_tolerance(variant.dtype_q, variant.is_mla() ? variant.dtype_q : variant.dtype_kv,
                         answer, row * head_dim + i);
    errors.squared_error += error * error;
    errors.squared_norm += value * value;
    if (tolerance > 0.0) {
      errors.worst_of_tolerance = std::max(errors.worst_of_tolerance, error / tolerance);
    }
    if (!(error <= tolerance)) {
      errors.worst_of_tolerance = std::max(errors.worst_of_tolerance, 2.0);
      note(errors, fmt::format("token {} head {} element {}: {} instead of {} (tolerance {})",
                               row / heads, row % heads, i, found, value, tolerance));
    }
  }
}

void check_lse(double found, double value, std::size_t row, DecodeErrors& errors) {
  if (std::isinf(value) && found == value) return;
  const double error = std::fabs(found - value);
  errors.worst_lse = std::max(errors.worst_lse, error);
  if (!(error <= lse_tolerance(value))) {
    note(errors, fmt::format("row {}: LSE {} instead of {}", row, found, value));
  }
}

}  // namespace

bool same_bits(const DecodeOutput& a, const DecodeOutput& b) {
  return a.o == b.o && a.lse.size() == b.lse.size() &&
         (a.lse.empty() || std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * 4) == 0);
}

DecodeErrors check_output(const DecodeVariant& variant, const DecodeCase& problem,
                          const DecodeAnswer& answer, const DecodeOutput& output) {
  DecodeErrors errors;
  std::vector<bool> owned(output.o.size(), false);
  for (std::size_t row = 0; row < answer.lse.size(); ++row) {
    check_row(variant, problem, answer, output, row, owned, errors);
    if (!output.lse.empty()) {
      check_lse(static_cast<double>(output.lse[row]), answer.lse[row], row, errors);
    }
  }
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (!owned[i] && output.o[i] != kPoison) {
      note(errors, fmt::format("element {} of the output's padding was written", i));
    }
  }
  return errors;
}

}  // namespace cubist::test
