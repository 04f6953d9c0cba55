#pragma once

#include <cstdint>
#include <vector>

#include "model/attention_problem.h"

namespace cubist::tuning {

/// The problems that are measured. Quick: seconds, for the shapes that most models have; full:
/// those of bench/decode/sweep.py.
enum class Grid { kQuick, kFull };

/// Paged decode of 8 KV heads, head_dim 64 and 128, KV bf16 and e4m3, pages of 64 tokens, and MLA
/// of 128 heads; none whose K and V have more than `max_kv_bytes`.
std::vector<AttentionProblem> grid_problems(Grid grid, std::int64_t max_kv_bytes);

/// Bytes of a problem's K and V.
std::int64_t kv_bytes(const AttentionProblem& problem);

/// The splits of a static kernel's sequences that are measured beside the model's own.
std::vector<std::int32_t> grid_splits(Grid grid);

}  // namespace cubist::tuning
