#include "launcher/decode_workspace.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

namespace cubist::launcher {
namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

std::optional<std::uint64_t> product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result) || result > kMaxBytes) return std::nullopt;
  }
  return result;
}

std::uint64_t align(std::uint64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
}

}  // namespace

Result<DecodeWorkspace> decode_workspace(const LaunchPlan& plan) {
  if (plan.num_ctas_kv <= 1) return DecodeWorkspace{};
  const auto num_ctas_q = static_cast<std::uint64_t>(plan.num_ctas_q);
  const auto num_ctas_kv = static_cast<std::uint64_t>(plan.num_ctas_kv);
  const std::uint64_t tile_q = plan.record->traits.tile_q;
  const std::uint64_t head_dim = plan.record->traits.head_dim_vo;
  const auto tiles = product({num_ctas_q, plan.grid[1], plan.grid[2]});
  const auto counters =
      product({std::max(tiles.value_or(kMaxBytes), kCountedTiles), sizeof(std::int32_t)});
  const auto rows = product({tiles.value_or(kMaxBytes), num_ctas_kv, tile_q});
  const auto stats = product({rows.value_or(kMaxBytes), 2 * sizeof(float)});
  const auto partial_o = product({rows.value_or(kMaxBytes), head_dim, sizeof(float)});
  // Each is below 2^63, so the sum of three and their padding fits 64 bits.
  if (!counters || !stats || !partial_o ||
      align(*counters) + align(*stats) + align(*partial_o) > kMaxBytes) {
    return fail(StatusCode::kInvalidArgument,
                "the workspace of {} x {} x {} tiles of {} rows, split over {} CTAs, is too large",
                num_ctas_q, plan.grid[1], plan.grid[2], tile_q, num_ctas_kv);
  }
  DecodeWorkspace workspace;
  workspace.counters_size = *counters;
  workspace.partial_stats_offset = align(*counters);
  workspace.partial_o_offset = workspace.partial_stats_offset + align(*stats);
  workspace.size = workspace.partial_o_offset + align(*partial_o);
  return workspace;
}

}  // namespace cubist::launcher
