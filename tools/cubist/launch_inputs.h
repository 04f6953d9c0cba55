#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "launcher/call_args.h"
#include "model/attention_problem.h"

namespace cubist::tools {

/// Random host-side tensors of a paged decode call, laid out by the problem's own strides.
struct LaunchInputs {
  std::vector<std::uint8_t> q;
  std::vector<std::uint8_t> k;            ///< with kv_combined: both halves
  std::vector<std::uint8_t> v;            ///< empty with kv_combined
  std::uint64_t v_offset = 0;             ///< with kv_combined: bytes from K's first element to V's
  std::vector<std::int32_t> block_table;  ///< [batch, max_pages_per_seq]
  std::vector<std::int32_t> seq_lens_kv;  ///< [batch]; the first is max_kv_len
  std::vector<std::int32_t> cum_seq_lens_q;  ///< [batch + 1]
  std::vector<float> sinks;                  ///< empty unless the problem has them
  std::uint64_t o_bytes = 0;                 ///< dense
  std::uint64_t lse_count = 0;               ///< 0 unless the problem wants it

  const std::uint8_t* v_data() const { return v.empty() ? k.data() + v_offset : v.data(); }
};

/// problem  of the cubist_decode family, with derived fields filled in
/// errors   kInvalidArgument: tensors too large for this machine's memory to be asked for
Result<LaunchInputs> make_launch_inputs(const AttentionProblem& problem, std::uint64_t seed);

/// The scales the problem's bmm1_scale and bmm2_scale ask for: sm_scale and o_scale, or the values
/// that device scalars shall hold.
struct LaunchScales {
  float sm_scale = 1.0F;
  float o_scale = 1.0F;
};
/// What the launcher would take a scale for that is 0 once it is a float32 is not what was asked.
/// errors  kInvalidArgument: bmm1_scale or bmm2_scale is not finite, or is 0, as float32
Status check_scales(const AttentionProblem& problem);
/// A bmm1_scale that was not given is 1/sqrt(head_dim).
/// errors  those of check_scales(); kInvalidArgument: no default for this MLA shape
Result<LaunchScales> launch_scales(const AttentionProblem& problem);

}  // namespace cubist::tools
