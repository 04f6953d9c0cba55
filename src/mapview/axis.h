#pragma once

#include <cstdint>
#include <vector>

#include "workingset/range.h"

namespace cubist::mapview {

/// At most `count` values of some ranges, both ends and ascending: all of them where they fit, else
/// spread by ratio, as what happens along these axes happens at ratios.
std::vector<std::int32_t> pick_values(const std::vector<workingset::Range>& ranges,
                                      std::size_t count);

}  // namespace cubist::mapview
