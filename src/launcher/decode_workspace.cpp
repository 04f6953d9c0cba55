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

/// Persistent kernels: columns of O that a warpgroup has.
std::uint64_t columns_of(const KernelTraits& traits) {
  return std::min<std::uint64_t>(traits.head_dim_vo, 256);
}

/// Persistent kernels: warpgroups that a tile's rows, 64 each, or columns are shared among.
std::uint64_t halves_of(const KernelTraits& traits) {
  return traits.tile_q > 64 ? 2 : traits.head_dim_vo / columns_of(traits);
}

/// Persistent kernels: counters of a sequence, column and warpgroup. MLA joins its parts by four.
std::uint64_t counters_of(const KernelTraits& traits) {
  return halves_of(traits) * (traits.reuse_smem_k_for_v ? 4 : 1);
}

/// How often each piece occurs.
struct Extent {
  std::uint64_t counters = 0;
  std::uint64_t ctas = 0;  ///< tiles times splits; persistent: CTAs of the launch
};

Result<DecodeWorkspace> carve(const KernelTraits& traits, const std::optional<Extent>& extent) {
  const bool persistent = traits.scheduler == TileScheduler::kPersistent;
  const Extent wanted = extent.value_or(Extent{kMaxBytes, kMaxBytes});
  const std::uint64_t head_dim = traits.head_dim_vo;
  const std::uint64_t rows = persistent ? 0 : traits.tile_q;
  const auto counters = product({std::max(wanted.counters, kCountedTiles), sizeof(std::int32_t)});
  const auto stats = product({wanted.ctas, rows, 2 * sizeof(float)});
  // Persistent: two parts a CTA, of 128 threads, each with half as many values as there are columns
  // and four statistics.
  const auto partial_o = persistent ? product({wanted.ctas, 2, halves_of(traits), 128,
                                               columns_of(traits) / 2 + 4, sizeof(float)})
                                    : product({wanted.ctas, rows, head_dim, sizeof(float)});
  // Each is below 2^63, so the sum of three and their padding fits 64 bits.
  if (!counters || !stats || !partial_o ||
      align(*counters) + align(*stats) + align(*partial_o) > kMaxBytes) {
    return fail(
        StatusCode::kInvalidArgument,
        "the workspace of {} CTAs with {} counters, of a kernel of {} rows and head_dim {}, "
        "is too large",
        wanted.ctas, wanted.counters, traits.tile_q, head_dim);
  }
  DecodeWorkspace workspace;
  workspace.counters_size = *counters;
  workspace.partial_stats_offset = align(*counters);
  workspace.partial_o_offset = workspace.partial_stats_offset + align(*stats);
  workspace.size = workspace.partial_o_offset + align(*partial_o);
  return workspace;
}

std::optional<Extent> extent_of(const LaunchPlan& plan) {
  if (plan.record->traits.scheduler == TileScheduler::kPersistent) {
    const auto counters = product(
        {plan.grid[0], static_cast<std::uint64_t>(plan.batch), counters_of(plan.record->traits)});
    if (!counters) return std::nullopt;
    return Extent{*counters, std::uint64_t{plan.grid[0]} * plan.grid[1]};
  }
  const auto tiles =
      product({static_cast<std::uint64_t>(plan.num_ctas_q), plan.grid[1], plan.grid[2]});
  const auto ctas =
      product({tiles.value_or(kMaxBytes), static_cast<std::uint64_t>(plan.num_ctas_kv)});
  if (!tiles || !ctas) return std::nullopt;
  return Extent{*tiles, *ctas};
}

}  // namespace

Result<DecodeWorkspace> decode_workspace(const LaunchPlan& plan) {
  if (plan.num_ctas_kv <= 1) return DecodeWorkspace{};
  return carve(plan.record->traits, extent_of(plan));
}

Result<DecodeWorkspace> decode_workspace_bound(const KernelTraits& traits, std::int64_t max_ctas,
                                               std::int32_t max_batch) {
  const auto ctas = static_cast<std::uint64_t>(max_ctas);
  if (traits.scheduler != TileScheduler::kPersistent) return carve(traits, Extent{ctas / 2, ctas});
  const auto counters =
      product({ctas / 2, static_cast<std::uint64_t>(max_batch), counters_of(traits)});
  return carve(traits, counters ? std::optional(Extent{*counters, ctas}) : std::nullopt);
}

}  // namespace cubist::launcher
