#pragma once

#include <cstddef>
#include <vector>

#include "mapview/cell_map.h"

namespace cubist::mapview {

/// Whether two cells are drawn alike: the same kernel, chosen in the same way.
bool look_alike(const Cell& a, const Cell& b);

/// A rectangle of cells, ends not included.
struct CellBox {
  std::size_t row = 0, end_row = 0;
  std::size_t column = 0, end_column = 0;

  std::size_t rows() const { return end_row - row; }
  std::size_t columns() const { return end_column - column; }
};

/// The fields of one panel, by a cell of each: cells that look alike and touch along an edge. A
/// field is given as the roomiest rectangle inside it, for its letter.
///
/// cell_width, cell_height  in pixels: room is the shorter side there, then the area
std::vector<CellBox> rooms_of_fields(const CellMap& map, std::size_t q, double cell_width,
                                     double cell_height);

}  // namespace cubist::mapview
