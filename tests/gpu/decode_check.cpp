#include "gpu/decode_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/decode_tolerance.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

void note(DecodeErrors& errors, std::string failure) {
  if (errors.failure.empty()) errors.failure = std::move(failure);
}

std::size_t element_of(const DecodeCase& problem, std::size_t row) {
  const auto heads = static_cast<std::size_t>(problem.problem.num_q_heads);
  return row / heads * static_cast<std::size_t>(problem.o_stride_tokens) +
         row % heads * static_cast<std::size_t>(problem.o_stride_heads);
}

Dtype probability_type(const DecodeVariant& variant) {
  return variant.is_mla() ? variant.dtype_q : variant.dtype_kv;
}

struct Place {
  std::size_t token;
  std::size_t head;
  std::size_t element;
};

void compare(double found, double value, double tolerance, const Place& place,
             DecodeErrors& errors) {
  const double error = std::fabs(found - value);
  errors.squared_error += error * error;
  errors.squared_norm += value * value;
  if (tolerance > 0.0) {
    errors.worst_of_tolerance = std::max(errors.worst_of_tolerance, error / tolerance);
  }
  if (error <= tolerance) return;
  errors.worst_of_tolerance = std::max(errors.worst_of_tolerance, 2.0);
  note(errors, fmt::format("token {} head {} element {}: {} instead of {} (tolerance {})",
                           place.token, place.head, place.element, found, value, tolerance));
}

/// Marks what a row may write, and compares it.
void check_row(const DecodeVariant& variant, const DecodeCase& problem, const DecodeAnswer& answer,
               const DecodeOutput& output, std::size_t row, std::vector<bool>& owned,
               DecodeErrors& errors) {
  const auto heads = static_cast<std::size_t>(problem.problem.num_q_heads);
  const auto head_dim = static_cast<std::size_t>(problem.problem.head_dim_vo);
  const std::size_t at = element_of(problem, row);
  for (std::size_t i = 0; i < head_dim; ++i) {
    owned[at + i] = true;
    double value = answer.o[row * head_dim + i];
    if (variant.dtype_o == Dtype::kE4m3) value = std::clamp(value, -448.0, 448.0);
    const auto found = static_cast<double>(decode_number(variant.dtype_o, output.o[at + i]));
    const double tolerance =
        decode_tolerance(variant.dtype_o, probability_type(variant), answer, row * head_dim + i);
    compare(found, value, tolerance, {row / heads, row % heads, i}, errors);
  }
}

/// The same for nvfp4: block by block.
void check_nvfp4_row(const DecodeVariant& variant, const DecodeCase& problem,
                     const DecodeAnswer& answer, const DecodeOutput& output, std::size_t row,
                     std::vector<bool>& owned, std::vector<bool>& owned_scales,
                     DecodeErrors& errors) {
  const auto heads = static_cast<std::size_t>(problem.problem.num_q_heads);
  const auto head_dim = static_cast<std::size_t>(problem.problem.head_dim_vo);
  const auto global = static_cast<double>(problem.o_sf_scale);
  const launcher::Nvfp4ScaleLayout layout = block_scales_of(problem);
  const std::size_t at = element_of(problem, row);
  for (std::size_t first = 0; first < head_dim; first += launcher::kNvfp4BlockElements) {
    const auto scale_at = static_cast<std::size_t>(
        layout.offset(static_cast<std::int64_t>(row / heads) + problem.o_sf_start_index,
                      static_cast<std::int64_t>((row % heads * head_dim + first) /
                                                launcher::kNvfp4BlockElements)));
    owned_scales[scale_at] = true;
    const auto scale = static_cast<double>(decode_number(Dtype::kE4m3, output.o_sf[scale_at]));
    double least = 0.0;  // of the block's largest magnitude
    double most = 0.0;
    for (std::size_t i = first; i < first + launcher::kNvfp4BlockElements; ++i) {
      const double magnitude = std::fabs(answer.o[row * head_dim + i]);
      const double lost =
          unrounded_tolerance(probability_type(variant), answer, row * head_dim + i);
      least = std::max(least, magnitude - lost);
      most = std::max(most, magnitude + lost);
    }
    const auto rounded = [&](double magnitude, double slack) {
      return static_cast<double>(
          round_to(Dtype::kE4m3, static_cast<float>(global * magnitude / 6.0 * slack)));
    };
    if (!(rounded(least, 1.0 - 0x1p-20) <= scale && scale <= rounded(most, 1.0 + 0x1p-20))) {
      note(errors,
           fmt::format("token {} head {} block {}: scale {} instead of {} to {}", row / heads,
                       row % heads, first / 16, scale, rounded(least, 1.0), rounded(most, 1.0)));
    }
    for (std::size_t i = first; i < first + launcher::kNvfp4BlockElements; ++i) {
      owned[at + i] = true;
      const std::size_t element = row * head_dim + i;
      const double unit = scale / global;  // what 1 in e2m1 stands for
      const double lost = unrounded_tolerance(probability_type(variant), answer, element);
      const double value = std::clamp(answer.o[element], -6.0 * unit, 6.0 * unit);
      const double largest = std::fabs(value) + lost;
      const double half_step = largest > 4.0 * unit   ? unit
                               : largest > 2.0 * unit ? unit / 2
                                                      : unit / 4;
      const auto found = static_cast<double>(decode_number(Dtype::kE2m1, output.o[at + i])) * unit;
      compare(found, value, lost + half_step * (1.0 + 0x1p-20), {row / heads, row % heads, i},
              errors);
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

launcher::Nvfp4ScaleLayout block_scales_of(const DecodeCase& made) {
  AttentionProblem problem;
  problem.dtype_o = Dtype::kE2m1;
  problem.num_q_heads = made.problem.num_q_heads;
  problem.head_dim_vo = made.problem.head_dim_vo;
  problem.sum_seq_q = std::max(made.problem.sum_seq_q(), 1);
  problem.o_sf_start_index = made.o_sf_start_index;
  return launcher::nvfp4_scale_layout(problem).value();
}

std::uint16_t poison_of(Dtype dtype_o) {
  return static_cast<std::uint16_t>((1U << dtype_bits(dtype_o)) - 1);
}

bool same_bits(const DecodeOutput& a, const DecodeOutput& b) {
  return a.o == b.o && a.o_sf == b.o_sf && a.lse.size() == b.lse.size() &&
         (a.lse.empty() || std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * 4) == 0);
}

DecodeErrors check_output(const DecodeVariant& variant, const DecodeCase& problem,
                          const DecodeAnswer& answer, const DecodeOutput& output) {
  DecodeErrors errors;
  std::vector<bool> owned(output.o.size(), false);
  std::vector<bool> owned_scales(output.o_sf.size(), false);
  for (std::size_t row = 0; row < answer.lse.size(); ++row) {
    if (variant.dtype_o == Dtype::kE2m1) {
      check_nvfp4_row(variant, problem, answer, output, row, owned, owned_scales, errors);
    } else {
      check_row(variant, problem, answer, output, row, owned, errors);
    }
    if (!output.lse.empty()) {
      check_lse(static_cast<double>(output.lse[row]), answer.lse[row], row, errors);
    }
  }
  for (std::size_t i = 0; i < owned.size(); ++i) {
    if (!owned[i] && output.o[i] != poison_of(variant.dtype_o)) {
      note(errors, fmt::format("element {} of the output's padding was written", i));
    }
  }
  for (std::size_t i = 0; i < owned_scales.size(); ++i) {
    if (!owned_scales[i] && output.o_sf[i] != 0xff) {
      note(errors, fmt::format("byte {} of the block scales, of no row, was written", i));
    }
  }
  return errors;
}

}  // namespace cubist::test
