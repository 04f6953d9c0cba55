#pragma once

#include <string>
#include <vector>

#include "mapview/cell_map.h"

namespace cubist::mapview {

/// Maps as one HTML page that needs nothing else: drawings beside each other, a legend, and on
/// hover the cell's kernel, plan, runner-up and modelled cost on every map at once. "#MAP/Q/B/KV"
/// behind the address shows a cell at once (numbers of the axes' values, from 0).
std::string render_html(const std::vector<CellMap>& maps, std::size_t per_row);

}  // namespace cubist::mapview
