#pragma once

#include <cstdint>

#include "selector/geometry.h"

namespace cubist::selector {

/// Relative time of one key (`per_key`) and of putting partial results together (`per_split`) for a
/// tile of so many rows. The published runtime's measurements; unitless, only comparisons mean
/// anything.
struct TileCost {
  float per_key = 0;
  float per_split = 0;
};

/// tile_q 8, 16, 32, 64 or 128; larger tiles count as 128.
TileCost tile_cost(std::int32_t tile_q);

/// Modelled time of a launch, float32 like the published model:
/// waves * (per_key * keys one CTA walks through + per_split * 128 * num_ctas_kv).
float modelled_time(std::int64_t kv_len, std::int32_t num_sms, std::int32_t tile_q,
                    std::int32_t step_kv, const CtaGrid& grid);

/// Rounds of CTAs the device needs when each SM holds one.
std::int64_t wave_count(const CtaGrid& grid, std::int32_t num_sms);

}  // namespace cubist::selector
