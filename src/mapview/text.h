#pragma once

#include <string>
#include <vector>

#include "mapview/cell_map.h"

namespace cubist::mapview {

/// Maps for a terminal: a letter a cell (lower case where selection fell back, '.' for a gap), one
/// block a max_q_len, then the legend. Lines stay within `width` as long as columns fit.
std::string render_text(const std::vector<CellMap>& maps);

/// How many columns of cells fit a terminal of this width.
std::size_t columns_that_fit(std::size_t width);

}  // namespace cubist::mapview
