#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "model/attention_problem.h"

namespace cubist::launcher {

/// A tensor's type, shape and strides, outermost dimension first. Strides in elements; for e2m1,
/// of which two share a byte, shape and strides still count single elements.
struct TensorLayout {
  static constexpr std::int32_t kMaxRank = 4;

  Dtype dtype = Dtype::kUnknown;
  std::int32_t rank = 0;
  std::array<std::int64_t, kMaxRank> shape{};
  std::array<std::int64_t, kMaxRank> strides{};

  bool operator==(const TensorLayout&) const = default;
};

/// "bf16 [8, 64, 128] with strides [8192, 128, 1]"
std::string to_string(const TensorLayout& layout);

/// The output of this problem, dense: [sum_seq_q, num_q_heads, head_dim_vo] of dtype_o. What to
/// allocate, and what a given output is held against; one rule for both.
///
/// problem  with derived fields filled in
TensorLayout output_layout(const AttentionProblem& problem);

/// Holds an output tensor against that rule:
///
///   dtype      dtype_o
///   shape      as output_layout; where every sequence has max_q_len tokens, also
///              [batch, max_q_len, num_q_heads, head_dim_vo]
///   strides    the last is 1, and the tokens of the four-dimensional shape are one row of tokens;
///              `dense`: all are those of a dense tensor (the trtllm-gen kernels write no other)
///
/// errors  kInvalidArgument: expected and actual layout, whatever differs
Status check_output_layout(const AttentionProblem& problem, const TensorLayout& given, bool dense);

/// Distance from token to token and from head to head of a layout that passed the check. Unit:
/// elements.
std::int64_t token_stride(const TensorLayout& layout);
std::int64_t head_stride(const TensorLayout& layout);

}  // namespace cubist::launcher
