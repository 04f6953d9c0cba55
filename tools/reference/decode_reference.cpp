#include "reference/decode_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace cubist {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// First elements of the keys [first, end) of one sequence and KV head, in K and in V alike.
std::vector<std::int64_t> rows_of_keys(const DecodeProblem& problem, int sequence, int kv_head,
                                       int first, int end) {
  std::vector<std::int64_t> rows;
  for (int key = first; key < end; ++key) {
    const std::int64_t page = problem.block_table[static_cast<std::size_t>(
        sequence * problem.max_pages_per_seq + key / problem.page_size)];
    rows.push_back(page * problem.kv_stride_pages + kv_head * problem.kv_stride_heads +
                   key % problem.page_size * problem.kv_stride_tokens);
  }
  return rows;
}

/// 2^(score - maximum) of each key, and their sum with the sink's.
struct Weights {
  std::vector<double> keys;
  double maximum = -kInfinity;  ///< the sink's score included
  double sum = 0.0;
  double best = 0.0;  ///< the largest of `keys`
};

Weights weigh(const DecodeProblem& problem, const float* q, const std::vector<std::int64_t>& rows,
              int head) {
  Weights weights;
  for (const std::int64_t row : rows) {
    double dot = 0.0;
    for (int i = 0; i < problem.head_dim; ++i) {
      dot += static_cast<double>(q[i]) *
             static_cast<double>(problem.k[static_cast<std::size_t>(row + i)]);
    }
    weights.keys.push_back(dot * problem.scale_log2);
    weights.maximum = std::max(weights.maximum, weights.keys.back());
  }
  double sink = -kInfinity;
  if (!problem.sinks.empty()) {
    sink = static_cast<double>(problem.sinks[static_cast<std::size_t>(head)]) * std::numbers::log2e;
    weights.maximum = std::max(weights.maximum, sink);
  }
  for (double& key : weights.keys) {
    key = std::exp2(key - weights.maximum);
    weights.sum += key;
    weights.best = std::max(weights.best, key);
  }
  if (sink > -kInfinity) weights.sum += std::exp2(sink - weights.maximum);
  return weights;
}

void attend_row(const DecodeProblem& problem, int sequence, int token, int head,
                DecodeAnswer& answer) {
  const auto index = static_cast<std::size_t>(sequence);
  const int q_begin = problem.cum_seq_lens_q[index];
  const int q_len = problem.cum_seq_lens_q[index + 1] - q_begin;
  const std::int64_t position = problem.seq_lens_kv[index] - q_len + token;
  const std::int64_t first = problem.window_left < 0 ? 0 : position - problem.window_left;
  const auto begin = static_cast<int>(std::max<std::int64_t>(first, 0));
  const auto end = static_cast<int>(std::max<std::int64_t>(position + 1, begin));
  const int kv_head = head / (problem.num_q_heads / problem.num_kv_heads);
  const std::vector<std::int64_t> rows = rows_of_keys(problem, sequence, kv_head, begin, end);
  const float* q = problem.q.data() + (q_begin + token) * problem.q_stride_tokens +
                   head * problem.q_stride_heads;
  const Weights weights = weigh(problem, q, rows, head);

  const auto row = static_cast<std::size_t>((q_begin + token) * problem.num_q_heads + head);
  answer.lse[row] = weights.maximum + std::log2(weights.sum);
  if (rows.empty()) return;
  const auto head_dim = static_cast<std::size_t>(problem.head_dim_vo);
  const double best = weights.best / weights.sum * std::fabs(problem.output_scale);
  for (std::size_t key = 0; key < rows.size(); ++key) {
    const double weight = weights.keys[key] / weights.sum * problem.output_scale;
    const float* v = problem.v.data() + rows[key];
    for (std::size_t i = 0; i < head_dim; ++i) {
      const double term = weight * static_cast<double>(v[i]);
      answer.o[row * head_dim + i] += term;
      answer.magnitude[row * head_dim + i] += std::fabs(term);
      answer.largest_magnitude[row * head_dim + i] += best * std::fabs(static_cast<double>(v[i]));
    }
  }
}

}  // namespace

DecodeAnswer decode_reference(const DecodeProblem& problem) {
  DecodeAnswer answer;
  const auto rows = static_cast<std::size_t>(problem.sum_seq_q() * problem.num_q_heads);
  answer.o.assign(rows * static_cast<std::size_t>(problem.head_dim_vo), 0.0);
  answer.magnitude = answer.o;
  answer.largest_magnitude = answer.o;
  answer.lse.assign(rows, -kInfinity);
  for (int sequence = 0; sequence < problem.batch(); ++sequence) {
    const auto index = static_cast<std::size_t>(sequence);
    const int q_len = problem.cum_seq_lens_q[index + 1] - problem.cum_seq_lens_q[index];
    for (int token = 0; token < q_len; ++token) {
      for (int head = 0; head < problem.num_q_heads; ++head) {
        attend_row(problem, sequence, token, head, answer);
      }
    }
  }
  return answer;
}

}  // namespace cubist
