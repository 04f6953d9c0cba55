#include "tuning/grid.h"

namespace cubist::tuning {
namespace {

struct Shape {
  std::int32_t num_q_heads;
  std::int32_t head_dim;
};
// Those of bench/decode: 12 and 8 query heads a KV head.
constexpr Shape kShapes[] = {{96, 128}, {64, 64}};

struct Axes {
  std::vector<std::int32_t> lengths;
  std::vector<std::int32_t> batches;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> mla_batches;
};

Axes axes_of(Grid grid) {
  if (grid == Grid::kQuick) return {{512, 2048, 8192}, {1, 8, 40}, {1, 4}, {8, 40}};
  return {
      {64, 512, 2048, 8192, 32768}, {1, 4, 8, 16, 40, 64, 128}, {1, 2, 4, 8}, {1, 8, 16, 40, 64}};
}

AttentionProblem paged(std::int32_t max_kv_len, std::int32_t batch, std::int32_t max_q_len) {
  AttentionProblem problem;
  problem.batch = batch;
  problem.max_q_len = max_q_len;
  problem.max_kv_len = max_kv_len;
  problem.page_size = 64;
  return problem;
}

AttentionProblem gqa(const Shape& shape, Dtype kv, AttentionProblem problem) {
  problem.dtype_k = problem.dtype_v = kv;
  problem.head_dim_qk = shape.head_dim;
  problem.num_q_heads = shape.num_q_heads;
  problem.num_kv_heads = 8;
  return problem;
}

AttentionProblem mla(AttentionProblem problem) {
  problem.is_mla = true;
  problem.head_dim_qk = 576;
  problem.head_dim_vo = 512;
  problem.num_q_heads = 128;
  problem.num_kv_heads = 1;
  return problem;
}

}  // namespace

std::int64_t kv_bytes(const AttentionProblem& problem) {
  const std::int64_t row = problem.is_mla
                               ? problem.head_dim_qk
                               : std::int64_t{problem.num_kv_heads} * problem.head_dim_qk * 2;
  return row * problem.batch * problem.max_kv_len * dtype_bits(problem.dtype_k) / 8;
}

std::vector<AttentionProblem> grid_problems(Grid grid, std::int64_t max_kv_bytes) {
  const Axes axes = axes_of(grid);
  std::vector<AttentionProblem> problems;
  const auto add = [&](const AttentionProblem& problem) {
    if (kv_bytes(problem) <= max_kv_bytes) problems.push_back(problem);
  };
  for (const std::int32_t length : axes.lengths) {
    for (const std::int32_t batch : axes.batches) {
      for (const std::int32_t tokens : axes.tokens) {
        for (const Dtype kv : {Dtype::kBf16, Dtype::kE4m3}) {
          for (const Shape& shape : kShapes) add(gqa(shape, kv, paged(length, batch, tokens)));
        }
      }
    }
    for (const std::int32_t batch : axes.mla_batches) add(mla(paged(length, batch, 1)));
  }
  return problems;
}

std::vector<std::int32_t> grid_splits(Grid grid) {
  if (grid == Grid::kQuick) return {1, 2, 4, 8};
  return {1, 2, 3, 4, 6, 8, 16};
}

}  // namespace cubist::tuning
