#pragma once

#include <array>
#include <cstdint>

#include "workingset/range.h"

namespace cubist::workingset {

/// The dimensions of a box, in this order everywhere.
enum Dimension : std::size_t { kBatch = 0, kMaxQLen = 1, kMaxKvLen = 2 };
inline constexpr std::size_t kDimensions = 3;
inline constexpr std::size_t kCorners = 8;

/// batch, max_q_len, max_kv_len.
using Point = std::array<std::int32_t, kDimensions>;

struct Box {
  std::array<Range, kDimensions> ranges;

  bool is_point() const;
  /// Bit d of `corner` picks the end of dimension d.
  Point corner(std::size_t corner) const;
  /// The first corner that is the same point: a dimension of one value has its corners twice.
  std::size_t first_alike(std::size_t corner) const;
  Point low() const { return corner(0); }
  Point high() const { return corner(kCorners - 1); }
};

/// Where to end the first half of a range of at least two values: near the geometric mean, as what
/// happens in these ranges happens at ratios; for max_kv_len at a multiple of 64 where there is
/// one.
std::int32_t middle(const Range& range, Dimension dimension);

}  // namespace cubist::workingset
