#pragma once

#include <cstdint>
#include <vector>

namespace cubist {

/// Paged GQA decode attention in plain numbers. Lengths in tokens, strides in elements.
struct DecodeProblem {
  int head_dim = 0;     ///< of Q and K
  int head_dim_vo = 0;  ///< of V and O; MLA: V's rows are the beginnings of K's
  int num_q_heads = 0;
  int num_kv_heads = 0;
  int page_size = 1;
  int max_pages_per_seq = 0;
  int window_left = -1;  ///< tokens left of the query's own; -1 = no window
  double scale_log2 = 1.0;
  double output_scale = 1.0;
  std::vector<std::int32_t> cum_seq_lens_q;  ///< [batch + 1]
  std::vector<std::int32_t> seq_lens_kv;     ///< [batch], the new tokens included
  std::vector<std::int32_t> block_table;     ///< [batch, max_pages_per_seq]
  std::vector<float> q;                      ///< [sum_seq_q, num_q_heads, head_dim] by strides
  std::vector<float> k;                      ///< [pages, ...] by strides, from offset 0
  std::vector<float> v;
  std::vector<float> sinks;  ///< [num_q_heads], natural-log units; empty = none
  std::int64_t q_stride_tokens = 0;
  std::int64_t q_stride_heads = 0;
  std::int64_t kv_stride_pages = 0;
  std::int64_t kv_stride_heads = 0;
  std::int64_t kv_stride_tokens = 0;

  int batch() const { return static_cast<int>(seq_lens_kv.size()); }
  int sum_seq_q() const { return cum_seq_lens_q.back(); }
};

/// [sum_seq_q, num_q_heads, head_dim_vo] and [sum_seq_q, num_q_heads], dense.
struct DecodeAnswer {
  std::vector<double> o;
  /// Sum of |probability * V| for each element of o: what rounding errors are relative to.
  std::vector<double> magnitude;
  /// The same with the probability of the row's best key for every key: what is lost where small
  /// probabilities vanish is relative to this.
  std::vector<double> largest_magnitude;
  std::vector<double> lse;  ///< base 2, the sink included; -inf for a row without keys and sink
};

/// float64 throughout, one row after the other. Token t of a sequence with n new tokens and L keys
/// stands at position L - n + t and sees keys [position - window_left, position].
DecodeAnswer decode_reference(const DecodeProblem& problem);

}  // namespace cubist
