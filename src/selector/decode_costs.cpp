#include "selector/decode_costs.h"

#include <algorithm>
#include <array>
#include <limits>

#include "selector/geometry.h"

namespace cubist::selector {
namespace {

// A CTA gets at least this many keys of a split sequence, and a sequence at most this many CTAs:
// the partial results of more cost more than they save.
constexpr std::int64_t kMinKeysPerCta = 256;
constexpr std::int64_t kMaxCtasPerKv = 64;
constexpr std::int64_t kMaxWaves = 4;

// Microseconds that do not depend on keys.
constexpr double kStaticStart = 1.2;
constexpr double kWave = 2.4;
constexpr double kJoin = 4.6;
constexpr double kStaticPart = 0.33;
constexpr double kStart = 1.0;
constexpr double kSequence = 3.9;
constexpr double kGroupJoin = 3.1;
constexpr double kGroupPart = 0.65;
// A persistent kernel's time for 64 keys, an element of a row of K.
constexpr double kElement = 0.94 / 128.0;
// An MLA kernel's: a launch, a sequence, 64 keys, parts that are joined, each of them, and what it
// costs where groups end inside sequences. Fitted by hand to docs/results/h200-mla.md.
constexpr double kMlaStart = 6.0;
constexpr double kMlaSequence = 8.0;
constexpr double kMlaTile = 1.72;
constexpr double kMlaJoin = 3.0;
constexpr double kMlaPart = 0.45;
constexpr double kMlaUneven = 18.0;
// A static kernel is taken where it is so much faster: its time is that of equal lengths, the
// persistent one's holds for any.
constexpr double kDoubt = 1.0 / 0.8;

/// A static kernel's microseconds for 64 keys, with an SM to itself and for each CTA more on it,
/// and how many of them an SM has.
struct StaticCost {
  std::uint32_t bits;  ///< of an element of K
  std::int32_t head_dim;
  std::int32_t tile_q;
  double alone;
  double more;
  std::int64_t per_sm;
};
constexpr std::array<StaticCost, 16> kStaticCosts = {{
    {16, 64, 16, 0.49, 0.47, 3},
    {16, 64, 32, 0.56, 0.47, 3},
    {16, 64, 64, 0.84, 0.62, 3},
    {16, 64, 128, 1.40, 1.00, 2},
    {16, 128, 16, 0.84, 0.05, 1},
    {16, 128, 32, 0.97, 0.05, 1},
    {16, 128, 64, 1.11, 0.05, 1},
    {16, 128, 128, 1.90, 0.05, 1},
    {8, 64, 16, 0.43, 0.20, 4},
    {8, 64, 32, 0.64, 0.35, 4},
    {8, 64, 64, 1.11, 0.47, 2},
    {8, 64, 128, 1.80, 0.90, 2},
    {8, 128, 16, 0.74, 0.47, 3},
    {8, 128, 32, 0.84, 0.47, 2},
    {8, 128, 64, 1.45, 1.08, 2},
    {8, 128, 128, 2.18, 0.05, 1},
}};

/// The row of a kernel, or of the next larger tile; a head size without rows costs what twice or
/// half of it does.
StaticCost static_cost(const KernelTraits& traits) {
  const std::uint32_t bits = dtype_bits(traits.dtype_k) <= 8 ? 8 : 16;
  const std::int32_t head_dim = std::clamp<std::int32_t>(traits.head_dim_qk, 64, 128);
  const double factor = static_cast<double>(traits.head_dim_qk) / head_dim;
  StaticCost found = kStaticCosts.back();
  for (const StaticCost& cost : kStaticCosts) {
    if (cost.bits != bits || cost.head_dim != head_dim) continue;
    found = cost;
    if (cost.tile_q >= traits.tile_q) break;
  }
  found.alone *= factor;
  found.more *= factor;
  if (factor > 1.0) found.per_sm = 1;
  return found;
}

std::int64_t tiles_of_sequence(const Request& request, const KernelTraits& traits) {
  std::int64_t keys = request.max_kv_len;
  if (request.window_bites()) {
    keys = std::min<std::int64_t>(keys, std::int64_t{request.window} + request.max_q_len);
  }
  return std::max<std::int64_t>(ceil_div(std::max<std::int64_t>(keys, 1), traits.tile_kv), 1);
}

double static_time(const StaticCost& cost, std::int64_t num_sms, std::int64_t tiles,
                   std::int64_t ctas) {
  const std::int64_t at_once = cost.per_sm * num_sms;
  const auto wave = [&](std::int64_t ctas_of_sm) {
    return kWave + static_cast<double>(tiles) *
                       (cost.alone + cost.more * static_cast<double>(ctas_of_sm - 1));
  };
  const std::int64_t rest = ctas % at_once;
  return kStaticStart + static_cast<double>(ctas / at_once) * wave(cost.per_sm) +
         (rest > 0 ? wave(ceil_div(rest, num_sms)) : 0.0);
}

DecodeSplit split_static(const Request& request, const KernelTraits& traits, std::int64_t columns) {
  const StaticCost cost = static_cost(traits);
  const std::int64_t tiles = tiles_of_sequence(request, traits);
  const std::int64_t ctas = columns * request.batch;
  const std::int64_t most =
      std::clamp<std::int64_t>(ceil_div(tiles * traits.tile_kv, kMinKeysPerCta), 1, kMaxCtasPerKv);
  DecodeSplit best = {columns, 1, std::numeric_limits<double>::max()};
  for (std::int64_t split = 1; split <= most; ++split) {
    if (split > 1 && ctas * split > max_split_ctas(traits, request.num_sms)) break;
    double time = static_time(cost, request.num_sms, ceil_div(tiles, split), ctas * split);
    if (split > 1) time += kJoin + kStaticPart * static_cast<double>(split);
    if (time < best.microseconds) {
      best = {columns, static_cast<std::int32_t>(split), time};
    }
  }
  best.microseconds *= kDoubt;
  return best;
}

DecodeSplit split_mla(const Request& request, const KernelTraits& traits, std::int64_t columns) {
  const std::int64_t batch = request.batch;
  const std::int64_t tiles = tiles_of_sequence(request, traits) * batch;
  const std::int64_t most = std::clamp<std::int64_t>(request.num_sms / columns, 1, tiles);
  const double waves = static_cast<double>(ceil_div(columns, request.num_sms));
  DecodeSplit best = {columns, 1, std::numeric_limits<double>::max()};
  for (std::int64_t groups = 1; groups <= most; ++groups) {
    const bool even = groups % batch == 0 || batch % groups == 0;
    double time = kMlaStart + kMlaSequence * static_cast<double>(ceil_div(batch, groups)) +
                  kMlaTile * static_cast<double>(ceil_div(tiles, groups));
    if (!even || groups > batch) {
      time += kMlaJoin + kMlaPart * static_cast<double>(ceil_div(groups, batch));
    }
    if (!even) time += kMlaUneven;
    if (time * waves < best.microseconds) {
      best = {columns, static_cast<std::int32_t>(groups), time * waves};
    }
  }
  return best;
}

DecodeSplit split_persistent(const Request& request, const KernelTraits& traits,
                             std::int64_t columns) {
  const std::int64_t tiles = tiles_of_sequence(request, traits) * request.batch;
  const std::int64_t groups = std::clamp<std::int64_t>(request.num_sms / columns, 1, tiles);
  const double a_group = static_cast<double>(request.batch) / static_cast<double>(groups);
  double time = kStart + kSequence * std::max(1.0, a_group) +
                static_cast<double>(ceil_div(tiles, groups)) * kElement * traits.head_dim_qk;
  if (groups > 1) time += kGroupJoin + kGroupPart * std::max(1.0, 1.0 / a_group);
  return {columns, static_cast<std::int32_t>(groups),
          static_cast<double>(ceil_div(columns, request.num_sms)) * time};
}

}  // namespace

std::int64_t max_split_ctas(const KernelTraits& traits, std::int32_t num_sms) {
  if (traits.scheduler == TileScheduler::kPersistent) return num_sms;
  return kMaxWaves * static_cost(traits).per_sm * num_sms;
}

DecodeSplit best_split(const Request& request, const KernelTraits& traits, std::int64_t columns) {
  if (traits.reuse_smem_k_for_v) return split_mla(request, traits, columns);
  if (traits.scheduler == TileScheduler::kPersistent) {
    return split_persistent(request, traits, columns);
  }
  return split_static(request, traits, columns);
}

}  // namespace cubist::selector
