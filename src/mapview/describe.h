#pragma once

#include <string>

#include "mapview/cell_map.h"

namespace cubist::mapview {

/// "tile_q 16, swaps, static, cga_smem, windowed": what tells the kernels of one class apart.
/// Kernels of two releases that are of one kind have the same text.
std::string kind_of(const KernelRecord& record);

/// "rule_finds_no_kernel" and so on; empty for the rules' own choice.
std::string fallback_text(FallbackReason reason);

/// "A7", "AC": the code of entry `number` of a legend, letters first.
std::string code_of(std::size_t number);

/// Text for HTML and SVG: markup characters as entities, control characters left out.
std::string escaped(std::string_view text);

}  // namespace cubist::mapview
