#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/kernel_record.h"

namespace cubist {

/// Compares what a published kernel's name says of itself with its traits: architecture, element
/// types, head dimensions, page size, tile, scheduler, kernel type, KV split, skip-softmax, two-CTA
/// MMA, and sliding or custom masks. (The words Dense and Causal are no facts: many causal
/// generation kernels are called Dense.) What a name does not say is not compared; names of another
/// form say nothing.
///
/// returns  the first contradiction as "tile_q: the name says 64, the row 128"; empty if there is
/// none
std::optional<std::string> name_contradiction(std::string_view name, const KernelTraits& traits);

}  // namespace cubist
