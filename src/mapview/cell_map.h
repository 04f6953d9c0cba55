#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "selector/kernel_table.h"
#include "workingset/query.h"

namespace cubist::mapview {

/// The lengths a map has cells for.
struct Axes {
  std::vector<std::int32_t> batch;       ///< rows
  std::vector<std::int32_t> max_q_len;   ///< panels
  std::vector<std::int32_t> max_kv_len;  ///< columns

  std::size_t cells() const { return batch.size() * max_q_len.size() * max_kv_len.size(); }
};

/// What selection answers for one problem.
struct Cell {
  static constexpr std::int32_t kNone = -1;

  std::int32_t kernel = kNone;     ///< into CellMap::kernels; kNone: a gap
  std::int32_t runner_up = kNone;  ///< the best other kernel by modelled time
  FallbackReason fallback = FallbackReason::kNone;
  float time = 0;  ///< modelled, unitless; 0: this family has no model
  float runner_up_time = 0;
  std::array<std::uint32_t, 3> grid = {0, 0, 0};
  std::uint32_t cluster = 1;
  std::int32_t num_ctas_kv = 1;
};

/// Which kernel serves which (batch x max_q_len x max_kv_len) cell of one class.
struct CellMap {
  std::string title;  ///< of the side: manifest and device
  std::string label;  ///< of the class
  Axes axes;
  std::vector<const KernelRecord*> kernels;  ///< in the order of appearance
  std::vector<Cell> cells;                   ///< [max_q_len][batch][max_kv_len], last fastest

  const Cell& at(std::size_t q, std::size_t b, std::size_t kv) const {
    return cells[(q * axes.batch.size() + b) * axes.max_kv_len.size() + kv];
  }
};

/// No map has more cells.
inline constexpr std::size_t kMaxCells = 1'000'000;

/// Asks selection for every cell, nothing known about clusters; the runner-up is the best other
/// kernel that serves.
///
/// errors  kInvalidArgument: no cell or more than kMaxCells, or a problem no call can have
Result<CellMap> make_cell_map(const selector::KernelTable& table, const workingset::Query& query,
                              const workingset::ProblemClass& cls, const Axes& axes);

}  // namespace cubist::mapview
