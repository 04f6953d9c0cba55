#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/aux_case.h"

namespace cubist::test {

/// Attention in float64, cut where a main kernel would cut it: its partial results in the layout of
/// model/aux_params.h, and the outputs that should come of them. What no reduction may read is NaN.
struct PartialResults {
  std::vector<std::uint16_t> partial_o;
  std::vector<float> partial_stats;
  std::vector<float> sinks;
  std::vector<std::int32_t> cum_seq_lens_q;  ///< empty where the lengths are fixed
  float scale_log2 = 0.0F;

  // [sum_seq_q, num_q_heads, head_dim_vo]
  std::vector<double> o;          ///< attention, nothing rounded
  std::vector<double> joined_o;   ///< the rounded partial results joined, nothing else rounded
  std::vector<double> magnitude;  ///< of what is summed: the measure of its rounding
  // [sum_seq_q, num_q_heads]
  std::vector<double> lse;  ///< base 2
};

PartialResults partial_results(const ReduceCase& made);

/// What came back of a launch.
struct ReduceOutput {
  std::vector<std::uint8_t> o;
  std::vector<float> softmax_stats;  ///< of the first sum_seq_q * num_q_heads entries, or empty
  std::vector<float> lse;            ///< [sum_seq_q, num_q_heads], or empty
};

struct ReduceErrors {
  double attention = 0.0;  ///< largest |o - attention| / what the roundings allow
  double joined = 0.0;     ///< largest |o - joined| / what the last rounding and float32 allow
  double lse = 0.0;        ///< largest |lse - reference|
  std::string failure;     ///< the first value outside its tolerance; empty: none
};
ReduceErrors check_reduction_output(const ReduceCase& made, const PartialResults& expected,
                                    const ReduceOutput& output);

}  // namespace cubist::test
