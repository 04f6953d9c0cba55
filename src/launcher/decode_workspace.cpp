#include "launcher/decode_workspace.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>

namespace cubist::launcher {
namespace {

/// Rows of one warpgroup; a larger tile has two.
constexpr std::uint64_t kStreamRows = 64;
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

/// Persistent kernels: every CTA may begin and end inside a sequence.
Result<DecodeWorkspace> stream_workspace(const LaunchPlan& plan) {
  if (plan.num_ctas_kv <= 1) return DecodeWorkspace{};
  const KernelTraits& traits = plan.record->traits;
  const std::uint64_t halves = traits.tile_q > kStreamRows ? 2 : 1;
  // 128 threads, each with half of head_dim values and four statistics.
  const std::uint64_t sums = 128 * (std::uint64_t{traits.head_dim_vo} / 2 + 4) * sizeof(float);
  const auto counted = product({plan.grid[0], static_cast<std::uint64_t>(plan.batch), halves});
  const auto counters =
      product({std::max(counted.value_or(kMaxBytes), kCountedTiles), sizeof(std::int32_t)});
  const auto partial_o = product({plan.grid[0], plan.grid[1], 2, halves, sums});
  if (!counters || !partial_o || align(*counters) + align(*partial_o) > kMaxBytes) {
    return fail(StatusCode::kInvalidArgument,
                "the workspace of {} columns of {} sequences, in {} groups of CTAs, is too large",
                plan.grid[0], plan.batch, plan.grid[1]);
  }
  DecodeWorkspace workspace;
  workspace.counters_size = *counters;
  workspace.partial_stats_offset = workspace.partial_o_offset = align(*counters);
  workspace.size = workspace.partial_o_offset + align(*partial_o);
  return workspace;
}

}  // namespace

Result<DecodeWorkspace> decode_workspace(const LaunchPlan& plan) {
  if (plan.record->traits.scheduler == TileScheduler::kPersistent) return stream_workspace(plan);
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
