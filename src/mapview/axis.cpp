#include "mapview/axis.h"

#include <algorithm>
#include <cmath>

namespace cubist::mapview {
namespace {

/// The value of the ranges nearest to `wanted`.
std::int32_t nearest(const std::vector<workingset::Range>& ranges, double wanted) {
  std::int32_t best = ranges.front().first;
  for (const workingset::Range& range : ranges) {
    const double inside = std::clamp(std::round(wanted), static_cast<double>(range.first),
                                     static_cast<double>(range.last));
    const auto value = static_cast<std::int32_t>(inside);
    if (std::abs(value - wanted) < std::abs(best - wanted)) best = value;
  }
  return best;
}

}  // namespace

std::vector<std::int32_t> pick_values(const std::vector<workingset::Range>& ranges,
                                      std::size_t count) {
  std::vector<std::int32_t> values;
  if (ranges.empty() || count == 0) return values;
  std::int64_t total = 0;
  for (const workingset::Range& range : ranges) total += range.size();
  if (total <= static_cast<std::int64_t>(count)) {
    for (const workingset::Range& range : ranges) {
      for (std::int64_t v = range.first; v <= range.last; ++v) {
        values.push_back(static_cast<std::int32_t>(v));
      }
    }
    return values;
  }
  const double low = std::log(static_cast<double>(ranges.front().first));
  const double high = std::log(static_cast<double>(ranges.back().last));
  // At the low end several steps round to one value; the values they save are spent higher up.
  for (std::size_t steps = count; values.size() < count && steps <= 4 * count; ++steps) {
    std::vector<std::int32_t> tried;
    for (std::size_t i = 0; i < steps; ++i) {
      const double part = steps == 1 ? 0 : static_cast<double>(i) / static_cast<double>(steps - 1);
      tried.push_back(nearest(ranges, std::exp(low + part * (high - low))));
    }
    std::sort(tried.begin(), tried.end());
    tried.erase(std::unique(tried.begin(), tried.end()), tried.end());
    if (tried.size() > count) break;
    values = std::move(tried);
  }
  return values;
}

}  // namespace cubist::mapview
