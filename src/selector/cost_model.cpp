#include "selector/cost_model.h"

namespace cubist::selector {

TileCost tile_cost(std::int32_t tile_q) {
  if (tile_q <= 8) return {1.0F, 1.0F};
  if (tile_q <= 16) return {1.2F, 1.03F};
  if (tile_q <= 32) return {1.48F, 1.08F};
  if (tile_q <= 64) return {1.68F, 1.2F};
  return {2.2F, 1.32F};
}

std::int64_t wave_count(const CtaGrid& grid, std::int32_t num_sms) {
  return ceil_div(grid.total(), num_sms);
}

float modelled_time(std::int64_t kv_len, std::int32_t num_sms, std::int32_t tile_q,
                    std::int32_t step_kv, const CtaGrid& grid) {
  const std::int64_t keys = ceil_div(ceil_div(kv_len, step_kv), grid.num_ctas_kv) * step_kv;
  const TileCost cost = tile_cost(tile_q);
  // The combining term is in units of 128 keys.
  return static_cast<float>(wave_count(grid, num_sms)) *
         (cost.per_key * static_cast<float>(keys) +
          cost.per_split * 128.0F * static_cast<float>(grid.num_ctas_kv));
}

}  // namespace cubist::selector
