#pragma once

#include <string>
#include <vector>

#include "mapview/cell_map.h"
#include "mapview/legend.h"

namespace cubist::mapview {

/// Where a map's panels lie in its picture, in pixels; the page's script finds cells by it.
struct PanelGeometry {
  double left = 0;
  double top = 0;
  double cell_width = 0;
  double cell_height = 0;
};

struct MapDrawing {
  std::string body;  ///< SVG elements, without the <svg> around them
  double width = 0;
  double height = 0;
  std::vector<PanelGeometry> panels;  ///< by max_q_len
};

/// One map: a panel a max_q_len, rows are batches (small ones below), columns max_kv_len. Cells
/// that follow each other with one kernel are one rectangle with its letter; fallbacks are striped,
/// gaps crossed. `with_titles`: each rectangle says on hover what it is.
MapDrawing draw_map(const Legend& legend, std::size_t number, const CellMap& map, bool with_titles);

/// The patterns that drawings refer to; once a document.
std::string drawing_definitions();

/// Maps with their legend, as one file that needs nothing else; `per_row` of them beside each
/// other.
std::string render_svg(const std::vector<CellMap>& maps, std::size_t per_row);

}  // namespace cubist::mapview
