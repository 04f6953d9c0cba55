#include "launcher/output_layout.h"

#include <fmt/ranges.h>

namespace cubist::launcher {
namespace {

using Numbers = std::array<std::int64_t, TensorLayout::kMaxRank>;

std::string list(const Numbers& numbers, std::int32_t count) {
  return fmt::format("[{}]", fmt::join(numbers.begin(), numbers.begin() + count, ", "));
}

Numbers dense_strides(const Numbers& shape, std::int32_t rank) {
  Numbers strides{};
  std::int64_t stride = 1;
  for (std::int32_t i = rank; i-- > 0;) {
    strides[static_cast<std::size_t>(i)] = stride;
    stride *= shape[static_cast<std::size_t>(i)];
  }
  return strides;
}

/// The same output with sequence and token apart.
TensorLayout by_sequence(const AttentionProblem& p) {
  TensorLayout layout{p.dtype_o, 4, {p.batch, p.max_q_len, p.num_q_heads, p.head_dim_vo}, {}};
  layout.strides = dense_strides(layout.shape, layout.rank);
  return layout;
}

bool tokens_are_even(const AttentionProblem& p) {
  return !p.varlen_q && p.sum_seq_q == std::int64_t{p.batch} * p.max_q_len;
}

/// What is wrong with the strides; empty: nothing. A dimension of one entry has no distance.
std::string stride_fault(const TensorLayout& given, const TensorLayout& expected, bool dense) {
  const auto rank = static_cast<std::size_t>(given.rank);
  if (given.strides[rank - 1] != 1) return "the last stride must be 1";
  if (dense) {
    for (std::size_t i = 0; i + 1 < rank; ++i) {
      if (given.shape[i] > 1 && given.strides[i] != expected.strides[i]) {
        return "this kernel writes dense outputs only";
      }
    }
    return {};
  }
  if (rank == 4 && given.shape[0] > 1 && given.strides[0] != given.shape[1] * given.strides[1]) {
    return "the tokens of all sequences must be evenly spaced";
  }
  return {};
}

}  // namespace

std::string to_string(const TensorLayout& layout) {
  return fmt::format("{} {} with strides {}", to_string(layout.dtype),
                     list(layout.shape, layout.rank), list(layout.strides, layout.rank));
}

TensorLayout output_layout(const AttentionProblem& p) {
  TensorLayout layout{p.dtype_o, 3, {p.sum_seq_q, p.num_q_heads, p.head_dim_vo}, {}};
  layout.strides = dense_strides(layout.shape, layout.rank);
  return layout;
}

Status check_output_layout(const AttentionProblem& problem, const TensorLayout& given, bool dense) {
  if (given.rank < 1 || given.rank > TensorLayout::kMaxRank) {
    return fail(StatusCode::kInvalidArgument,
                "o has {} dimensions; expected {} (3, or 4 with the sequences apart)", given.rank,
                to_string(output_layout(problem)));
  }
  const bool four = given.rank == 4 && tokens_are_even(problem);
  const TensorLayout expected = four ? by_sequence(problem) : output_layout(problem);
  std::string fault;
  if (given.dtype != expected.dtype) {
    fault = "the type differs";
  } else if (given.rank != expected.rank || given.shape != expected.shape) {
    fault = "the shape differs";
  } else {
    fault = stride_fault(given, expected, dense);
  }
  if (fault.empty()) return {};
  return fail(StatusCode::kInvalidArgument, "o is {}; expected {}: {}", to_string(given),
              to_string(expected), fault);
}

std::int64_t token_stride(const TensorLayout& layout) {
  return layout.strides[static_cast<std::size_t>(layout.rank) - 3];
}

std::int64_t head_stride(const TensorLayout& layout) {
  return layout.strides[static_cast<std::size_t>(layout.rank) - 2];
}

}  // namespace cubist::launcher
