#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/attention_problem.h"
#include "model/kernel_record.h"
#include "model/launch_plan.h"

namespace cubist::test {

/// A reduction to try: what a main kernel was launched on, and how it spread the work.
struct ReduceCase {
  Dtype dtype_q = Dtype::kBf16;
  Dtype dtype_o = Dtype::kBf16;
  int tile_q = 64;
  int columns = 128;  ///< of one column CTA
  int num_head_dim_ctas = 1;
  bool two_cta_mma = false;  ///< the record says half of `columns`
  int num_q_heads = 64;
  int num_kv_heads = 1;
  bool groups_tokens = false;
  int max_q_len = 1;
  std::vector<std::int32_t> q_lens;  ///< empty: max_q_len each, and no cumulative lengths
  std::vector<std::int32_t> kv_lens;
  int num_ctas_kv = 4;
  int ctas_per_tile = 1;
  int sparse_topk = 0;
  std::vector<std::int32_t> topk_lens;  ///< one a token: dynamic token-sparse
  bool sinks = false;
  float sink_offset = 0.0F;  ///< added to random sinks
  bool wants_lse = true;
  bool scale_on_device = false;
  bool poisons_entries_without_keys = false;
  float scale = 0.3F;
  float output_scale = 1.5F;
  std::uint64_t seed = 1;

  int batch() const { return static_cast<int>(kv_lens.size()); }
  int head_dim_vo() const { return columns * num_head_dim_ctas; }
  int heads_per_kv() const { return num_q_heads / num_kv_heads; }
  int heads_per_cta() const { return heads_per_kv() < tile_q ? heads_per_kv() : tile_q; }
  int tokens_per_cta() const { return groups_tokens ? tile_q / heads_per_cta() : 1; }
  int num_ctas_q() const { return (max_q_len + tokens_per_cta() - 1) / tokens_per_cta(); }
  int q_len(int sequence) const {
    return q_lens.empty() ? max_q_len : q_lens[static_cast<std::size_t>(sequence)];
  }
  std::int64_t first_token(int sequence) const;  ///< row of O
  std::int64_t sum_seq_q() const { return first_token(batch()); }
  std::string text() const;
};

/// The case as selection would describe it. The plan points at the record.
struct ReduceLaunch {
  AttentionProblem problem;
  std::unique_ptr<KernelRecord> record;
  LaunchPlan plan;
  std::int32_t num_sms = 0;  ///< enough for the main grid, which decides the workspace
};
ReduceLaunch launch_of(const ReduceCase& made);

/// Every tile, head size and set of types, tokens grouped or not, and one case for each rule.
/// reduced: a few hundredths of the work, for checkers and machines without a GPU.
std::vector<ReduceCase> reduce_cases(bool reduced);

}  // namespace cubist::test
