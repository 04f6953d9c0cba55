#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist::workingset {

/// Whole numbers first..last, both included.
struct Range {
  std::int32_t first = 1;
  std::int32_t last = 1;

  std::int64_t size() const { return std::int64_t{last} - first + 1; }
  bool operator==(const Range&) const = default;
};

/// Reads "8", "1..256", "..128k" (from 1; k is 1,024), or several of them with commas;
/// gives them sorted, and joined where they touch.
///
/// field   what messages call it: "batch"
/// errors  kInvalidArgument: nothing, no number, 0, more than 2147483647, or an end before its
/// start
Result<std::vector<Range>> parse_ranges(std::string_view field, std::string_view text);

/// Checks ranges made otherwise: at least one, each 1 <= first <= last, apart and ascending.
Status validate_ranges(std::string_view field, const std::vector<Range>& ranges);

/// "1..8,16"
std::string to_string(const std::vector<Range>& ranges);

/// The pieces of `range` when it is cut behind each of `ends` that lies inside.
std::vector<Range> cut(const Range& range, const std::vector<std::int32_t>& ends);

}  // namespace cubist::workingset
