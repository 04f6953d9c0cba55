#include "launch_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "launcher/scales.h"
#include "reference/decode_reference.h"
#include "reference/decode_tolerance.h"
#include "reference/number_formats.h"

namespace cubist::tools {
namespace {

// Multiplications of the reference: about a second. Unit: products.
constexpr double kMaxWork = 1e9;

float load(Dtype dtype, const std::uint8_t* base, std::int64_t element) {
  const std::int64_t bytes = dtype_bits(dtype) / 8;
  std::uint16_t bits = 0;
  std::memcpy(&bits, base + element * bytes, static_cast<std::size_t>(bytes));
  return decode_number(dtype, bits);
}

class Checker {
 public:
  Checker(const AttentionProblem& problem, const LaunchInputs& inputs, const LaunchScales& scales,
          const LaunchOutputs& outputs)
      : p_(problem),
        inputs_(inputs),
        outputs_(outputs),
        group_(problem.num_q_heads / problem.num_kv_heads),
        scale_log2_(launcher::scale_log2(static_cast<double>(scales.sm_scale))),
        output_scale_(scales.o_scale) {}

  LaunchCheck run() {
    const double pair = 2.0 * p_.max_q_len * group_ * p_.max_kv_len * p_.head_dim_qk;
    const auto wanted = static_cast<std::int64_t>(kMaxWork / pair / p_.batch);
    const std::int64_t heads = std::clamp<std::int64_t>(wanted, 1, p_.num_kv_heads);
    for (std::int32_t sequence = 0; sequence < p_.batch; ++sequence) {
      for (std::int64_t i = 0; i < heads; ++i) {
        // Another choice of heads for each sequence.
        compare(sequence, static_cast<std::int32_t>((sequence + i) % p_.num_kv_heads));
      }
    }
    check_.total = static_cast<std::uint64_t>(inputs_.cum_seq_lens_q.back()) *
                   static_cast<std::uint64_t>(p_.num_q_heads) *
                   static_cast<std::uint64_t>(p_.head_dim_vo);
    check_.relative_error = norm_ > 0.0 ? std::sqrt(error_ / norm_) : 0.0;
    return check_;
  }

 private:
  /// The problem of one sequence and KV head, its keys one behind the other.
  DecodeProblem extract(std::int32_t sequence, std::int32_t kv_head) const {
    const auto at = static_cast<std::size_t>(sequence);
    DecodeProblem out;
    out.head_dim = p_.head_dim_qk;
    out.head_dim_vo = p_.head_dim_vo;
    out.num_q_heads = group_;
    out.num_kv_heads = 1;
    out.window_left = p_.window_left;
    out.scale_log2 = static_cast<double>(scale_log2_);
    out.output_scale = static_cast<double>(output_scale_);
    const std::int32_t first_token = inputs_.cum_seq_lens_q[at];
    const std::int32_t tokens = inputs_.cum_seq_lens_q[at + 1] - first_token;
    out.cum_seq_lens_q = {0, tokens};
    out.seq_lens_kv = {inputs_.seq_lens_kv[at]};
    out.max_pages_per_seq = inputs_.seq_lens_kv[at];
    out.q_stride_heads = out.kv_stride_pages = p_.head_dim_qk;
    out.q_stride_tokens = std::int64_t{p_.head_dim_qk} * group_;
    if (!inputs_.sinks.empty()) {
      const auto first = inputs_.sinks.begin() + kv_head * group_;
      out.sinks.assign(first, first + group_);
    }
    for (std::int32_t row = 0; row < tokens * group_; ++row) {
      append(p_.dtype_q, inputs_.q.data(),
             (first_token + row / group_) * p_.q_stride_tokens +
                 (kv_head * group_ + row % group_) * p_.q_stride_heads,
             out.q);
    }
    for (std::int32_t key = 0; key < out.max_pages_per_seq; ++key) {
      out.block_table.push_back(key);
      const std::int64_t row = row_of_key(sequence, kv_head, key);
      append(p_.dtype_k, inputs_.k.data(), row, out.k);
      append(p_.dtype_v, inputs_.v_data(), row, out.v);
    }
    return out;
  }

  std::int64_t row_of_key(std::int32_t sequence, std::int32_t kv_head, std::int32_t key) const {
    const std::int64_t page =
        inputs_.block_table[static_cast<std::size_t>(sequence) *
                                static_cast<std::size_t>(p_.max_pages_per_seq) +
                            static_cast<std::size_t>(key / p_.page_size)];
    return page * p_.kv_stride_batch + kv_head * p_.kv_stride_heads +
           key % p_.page_size * p_.kv_stride_tokens;
  }

  void append(Dtype dtype, const std::uint8_t* base, std::int64_t row,
              std::vector<float>& out) const {
    for (std::int64_t i = 0; i < p_.head_dim_qk; ++i) out.push_back(load(dtype, base, row + i));
  }

  void compare(std::int32_t sequence, std::int32_t kv_head) {
    const DecodeAnswer answer = decode_reference(extract(sequence, kv_head));
    const std::int32_t first_token = inputs_.cum_seq_lens_q[static_cast<std::size_t>(sequence)];
    for (std::size_t row = 0; row < answer.lse.size(); ++row) {
      const std::int32_t token = first_token + static_cast<std::int32_t>(row) / group_;
      const std::int32_t head = kv_head * group_ + static_cast<std::int32_t>(row) % group_;
      compare_row(answer, row, token, head);
    }
  }

  void compare_row(const DecodeAnswer& answer, std::size_t row, std::int32_t token,
                   std::int32_t head) {
    const auto head_dim = static_cast<std::size_t>(p_.head_dim_vo);
    const std::size_t out_row =
        static_cast<std::size_t>(token) * static_cast<std::size_t>(p_.num_q_heads) +
        static_cast<std::size_t>(head);
    for (std::size_t i = 0; i < head_dim; ++i) {
      const double expected = answer.o[row * head_dim + i];
      const auto found =
          static_cast<double>(decode_number(p_.dtype_o, outputs_.o[out_row * head_dim + i]));
      const double error = std::fabs(found - expected);
      const double tolerance = decode_tolerance(p_.dtype_o, p_.is_mla ? p_.dtype_q : p_.dtype_k,
                                                answer, row * head_dim + i);
      ++check_.compared;
      error_ += error * error;
      norm_ += expected * expected;
      if (tolerance > 0.0) {
        check_.worst_of_tolerance = std::max(check_.worst_of_tolerance, error / tolerance);
      }
      if (!(error <= tolerance)) {
        note(fmt::format("token {} head {} element {} is {}, float64 gives {} (tolerance {})",
                         token, head, i, found, expected, tolerance));
      }
    }
    if (!outputs_.lse.empty()) compare_lse(answer.lse[row], outputs_.lse[out_row], token, head);
  }

  void compare_lse(double expected, float found, std::int32_t token, std::int32_t head) {
    const auto value = static_cast<double>(found);
    if (std::isinf(expected) && value == expected) return;
    check_.worst_lse = std::max(check_.worst_lse, std::fabs(value - expected));
    if (!(std::fabs(value - expected) <= lse_tolerance(expected))) {
      note(fmt::format("lse of token {} head {} is {}, float64 gives {}", token, head, value,
                       expected));
    }
  }

  void note(std::string failure) {
    if (check_.failure.empty()) check_.failure = std::move(failure);
  }

  const AttentionProblem& p_;
  const LaunchInputs& inputs_;
  const LaunchOutputs& outputs_;
  std::int32_t group_;
  float scale_log2_;
  float output_scale_;
  double error_ = 0.0;
  double norm_ = 0.0;
  LaunchCheck check_;
};

}  // namespace

LaunchCheck check_launch(const AttentionProblem& problem, const LaunchInputs& inputs,
                         const LaunchScales& scales, const LaunchOutputs& outputs) {
  return Checker(problem, inputs, scales, outputs).run();
}

}  // namespace cubist::tools
