#include "workingset/box.h"

#include <algorithm>
#include <cmath>

namespace cubist::workingset {

bool Box::is_point() const {
  return std::all_of(ranges.begin(), ranges.end(),
                     [](const Range& range) { return range.first == range.last; });
}

Point Box::corner(std::size_t corner) const {
  Point point{};
  for (std::size_t d = 0; d < kDimensions; ++d) {
    point[d] = (corner >> d & 1U) != 0 ? ranges[d].last : ranges[d].first;
  }
  return point;
}

std::size_t Box::first_alike(std::size_t corner) const {
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (ranges[d].size() == 1) corner &= ~(std::size_t{1} << d);
  }
  return corner;
}

std::int32_t middle(const Range& range, Dimension dimension) {
  const double mean = std::sqrt(static_cast<double>(range.first) * range.last);
  const auto end = std::clamp(static_cast<std::int32_t>(mean), range.first, range.last - 1);
  if (dimension != kMaxKvLen) return end;
  constexpr std::int32_t kGrain = 64;  // the smallest step_kv: nothing sees less
  const std::int32_t below = end / kGrain * kGrain;
  if (below >= range.first) return below;
  return below < range.last - kGrain ? below + kGrain : end;
}

}  // namespace cubist::workingset
