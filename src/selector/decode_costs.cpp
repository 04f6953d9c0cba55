#include "selector/decode_costs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "model/decode_params.h"
#include "selector/geometry.h"

namespace cubist::selector {
namespace {

// A CTA gets at least this many keys of a split sequence, and a sequence at most this many CTAs:
// the partial results of more cost more than they save.
constexpr std::int64_t kMinKeysPerCta = std::int64_t{64} * kCubistDecodeMinTilesPerCta;
constexpr std::int64_t kMaxCtasPerKv = 64;
constexpr std::int64_t kMaxWaves = 4;
// Batch-invariant: CTAs that one sequence has at most, if its KV heads are few enough to allow it.
// About as many as the SMs of the GPUs this is for, yet a constant.
constexpr std::int32_t kInvariantCtas = 128;
constexpr std::int32_t kMinInvariantSplit = 16;
constexpr std::int32_t kTileKv = 64;  // of every static kernel

// Microseconds that do not depend on keys.
constexpr double kStaticStart = 1.2;
constexpr double kWave = 2.4;
constexpr double kJoin = 4.6;
constexpr double kStaticPart = 0.33;
constexpr double kStart = 1.0;
constexpr double kSequence = 3.9;
constexpr double kGroupJoin = 3.1;
constexpr double kGroupPart = 0.65;
// A persistent kernel's time for 64 keys, an element of a row of K: see PersistentCost.
constexpr double kElement = 0.94 / 128.0;
// An MLA kernel's: a launch, a sequence, 64 keys, parts that are joined, each of them, and what it
// costs where groups end inside sequences. Fitted by hand to docs/results/h200-mla.md.
constexpr double kMlaStart = 6.0;
constexpr double kMlaSequence = 8.0;
constexpr double kMlaTile = 1.72;
constexpr double kMlaJoin = 3.0;
constexpr double kMlaPart = 0.45;
constexpr double kMlaUneven = 18.0;

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

/// A persistent kernel's time for 64 keys, and for a sequence (its rows of Q, its first keys and
/// its output), over the model's.
struct PersistentCost {
  std::uint32_t bits;  ///< of an element of K
  std::int32_t head_dim;
  std::int32_t tile_q;
  double tile;
  double sequence;
};
constexpr std::array<PersistentCost, 19> kPersistentCosts = {{
    {16, 64, 8, 0.94, 0.23},   {16, 64, 16, 0.94, 0.38},   {16, 64, 24, 0.94, 0.54},
    {16, 64, 32, 0.94, 0.77},  {16, 64, 64, 0.98, 0.46},   {16, 64, 128, 1.29, 0.77},
    {16, 128, 16, 0.95, 0.31}, {16, 128, 24, 0.95, 0.41},  {16, 128, 32, 0.96, 0.62},
    {16, 128, 64, 0.98, 0.46}, {16, 128, 128, 0.99, 1.28}, {8, 64, 16, 0.55, 0.51},
    {8, 64, 32, 0.62, 0.92},   {8, 64, 64, 0.80, 0.44},    {8, 64, 128, 1.39, 0.90},
    {8, 128, 16, 0.49, 0.54},  {8, 128, 32, 0.51, 0.90},   {8, 128, 48, 0.61, 2.05},
    {8, 128, 128, 0.85, 1.08},
}};
// A persistent kernel copies a page's rows 128 bytes at a time where the page is smaller than a
// tile; the copy engine takes so many microseconds for each copy, however short.
constexpr double kCopy = 0.063;
constexpr std::int64_t kCopyBits = 1024;

DecodeModel make_shipped_model() {
  DecodeModel model;
  model.source = "the shipped model";
  model.static_start = kStaticStart;
  model.wave = kWave;
  model.join = kJoin;
  model.static_part = kStaticPart;
  model.start = kStart;
  model.sequence = kSequence;
  model.group_join = kGroupJoin;
  model.group_part = kGroupPart;
  model.element = kElement;
  model.mla_start = kMlaStart;
  model.mla_sequence = kMlaSequence;
  model.mla_tile = kMlaTile;
  model.mla_join = kMlaJoin;
  model.mla_part = kMlaPart;
  model.mla_uneven = kMlaUneven;
  static_assert(kStaticCosts.size() <= DecodeModel::kMaxStaticCosts);
  std::copy(kStaticCosts.begin(), kStaticCosts.end(), model.static_costs.begin());
  model.num_static_costs = kStaticCosts.size();
  return model;
}

/// The row of a kernel, or of the next larger tile, of the head size next to its own.
template <class Rows>
auto cost_of(const Rows& rows, const KernelTraits& traits) {
  const std::uint32_t bits = dtype_bits(traits.dtype_k) <= 8 ? 8 : 16;
  const std::int32_t head_dim = std::clamp<std::int32_t>(traits.head_dim_qk, 64, 128);
  auto found = rows.back();
  for (const auto& cost : rows) {
    if (cost.bits != bits || cost.head_dim != head_dim) continue;
    found = cost;
    if (cost.tile_q >= traits.tile_q) break;
  }
  return found;
}

/// A head size without rows costs what twice or half of it does.
StaticCost static_cost(const DecodeModel& model, const KernelTraits& traits) {
  StaticCost found = cost_of(std::span(model.static_costs.data(), model.num_static_costs), traits);
  const double factor = static_cast<double>(traits.head_dim_qk) /
                        std::clamp<std::int32_t>(traits.head_dim_qk, 64, 128);
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

double static_time(const DecodeModel& model, const StaticCost& cost, std::int64_t num_sms,
                   std::int64_t tiles, std::int64_t ctas) {
  const std::int64_t at_once = cost.per_sm * num_sms;
  const auto wave = [&](std::int64_t ctas_of_sm) {
    return model.wave + static_cast<double>(tiles) *
                            (cost.alone + cost.more * static_cast<double>(ctas_of_sm - 1));
  };
  const std::int64_t rest = ctas % at_once;
  return model.static_start + static_cast<double>(ctas / at_once) * wave(cost.per_sm) +
         (rest > 0 ? wave(ceil_div(rest, num_sms)) : 0.0);
}

/// Of a static kernel whose sequences are split so; `ctas`: before the split.
double split_time(const DecodeModel& model, const StaticCost& cost, std::int64_t num_sms,
                  std::int64_t tiles, std::int64_t ctas, std::int64_t split) {
  const double time = static_time(model, cost, num_sms, ceil_div(tiles, split), ctas * split);
  return split > 1 ? time + model.join + model.static_part * static_cast<double>(split) : time;
}

/// The one split that a batch-invariant launch may have.
DecodeSplit split_invariant(const DecodeModel& model, const Request& request,
                            const KernelTraits& traits, std::int64_t columns) {
  const std::int32_t split =
      invariant_split(request.max_kv_len, request.max_q_len, request.window, request.num_kv_heads);
  return {columns, split, modelled_us(model, request, traits, columns, split)};
}

DecodeSplit split_static(const DecodeModel& model, const Request& request,
                         const KernelTraits& traits, std::int64_t columns) {
  const StaticCost cost = static_cost(model, traits);
  const std::int64_t tiles = tiles_of_sequence(request, traits);
  const std::int64_t ctas = columns * request.batch;
  const std::int64_t most =
      std::clamp<std::int64_t>(ceil_div(tiles * traits.tile_kv, kMinKeysPerCta), 1, kMaxCtasPerKv);
  DecodeSplit best = {columns, 1, std::numeric_limits<double>::max()};
  for (std::int64_t split = 1; split <= most; ++split) {
    if (split > 1 && ctas * split > max_split_ctas(model, traits, request.num_sms)) break;
    const double time = split_time(model, cost, request.num_sms, tiles, ctas, split);
    if (time < best.microseconds) {
      best = {columns, static_cast<std::int32_t>(split), time};
    }
  }
  best.microseconds *= kStaticDoubt;
  return best;
}

/// Of an MLA kernel, one wave.
double mla_time(const DecodeModel& model, std::int64_t batch, std::int64_t tiles,
                std::int64_t groups) {
  const bool even = groups % batch == 0 || batch % groups == 0;
  double time = model.mla_start +
                model.mla_sequence * static_cast<double>(ceil_div(batch, groups)) +
                model.mla_tile * static_cast<double>(ceil_div(tiles, groups));
  if (!even || groups > batch) {
    time += model.mla_join + model.mla_part * static_cast<double>(ceil_div(groups, batch));
  }
  return even ? time : time + model.mla_uneven;
}

DecodeSplit split_mla(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                      std::int64_t columns) {
  const std::int64_t batch = request.batch;
  const std::int64_t tiles = tiles_of_sequence(request, traits) * batch;
  const std::int64_t most = std::clamp<std::int64_t>(request.num_sms / columns, 1, tiles);
  const double waves = static_cast<double>(ceil_div(columns, request.num_sms));
  DecodeSplit best = {columns, 1, std::numeric_limits<double>::max()};
  for (std::int64_t groups = 1; groups <= most; ++groups) {
    const double time = mla_time(model, batch, tiles, groups);
    if (time * waves < best.microseconds) {
      best = {columns, static_cast<std::int32_t>(groups), time * waves};
    }
  }
  return best;
}

/// Microseconds that copying 64 keys takes at least.
double copy_time(const Request& request, const KernelTraits& traits) {
  if (request.page_size >= traits.tile_kv) return 0.0;
  const std::int64_t row_bits = std::int64_t{dtype_bits(traits.dtype_k)} * traits.head_dim_qk;
  return kCopy * static_cast<double>(2 * ceil_div(row_bits, kCopyBits)) * traits.tile_kv /
         request.page_size;
}

/// Of a persistent kernel, one wave.
double group_time(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                  std::int64_t tiles, std::int64_t groups) {
  const PersistentCost cost = cost_of(kPersistentCosts, traits);
  const double tile =
      std::max(cost.tile * model.element * traits.head_dim_qk, copy_time(request, traits));
  const double a_group = static_cast<double>(request.batch) / static_cast<double>(groups);
  double time = model.start + cost.sequence * model.sequence * std::max(1.0, a_group) +
                static_cast<double>(ceil_div(tiles, groups)) * tile;
  if (groups > 1) time += model.group_join + model.group_part * std::max(1.0, 1.0 / a_group);
  return time;
}

DecodeSplit split_persistent(const DecodeModel& model, const Request& request,
                             const KernelTraits& traits, std::int64_t columns) {
  const std::int64_t tiles = tiles_of_sequence(request, traits) * request.batch;
  const std::int64_t groups = std::clamp<std::int64_t>(request.num_sms / columns, 1, tiles);
  const double time = group_time(model, request, traits, tiles, groups);
  return {columns, static_cast<std::int32_t>(groups),
          static_cast<double>(ceil_div(columns, request.num_sms)) * time};
}

}  // namespace

const DecodeModel& shipped_decode_model() {
  static const DecodeModel kModel = make_shipped_model();
  return kModel;
}

std::int32_t invariant_split(std::int32_t max_kv_len, std::int32_t max_q_len, std::int32_t window,
                             std::int32_t num_kv_heads) {
  std::int64_t tiles = ceil_div(std::int64_t{max_kv_len}, kTileKv);
  // What all tokens of a CTA see may begin and end inside a tile.
  const std::int64_t seen = std::int64_t{window} + max_q_len;
  if (seen < max_kv_len) tiles = std::min(tiles, ceil_div(seen, kTileKv) + 1);
  const std::int64_t most =
      std::clamp<std::int64_t>(kInvariantCtas / num_kv_heads, kMinInvariantSplit, kMaxCtasPerKv);
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(ceil_div(tiles, kCubistDecodeInvariantTilesPerCta), 1, most));
}

std::int64_t max_split_ctas(const DecodeModel& model, const KernelTraits& traits,
                            std::int32_t num_sms) {
  if (traits.scheduler == TileScheduler::kPersistent) return num_sms;
  return kMaxWaves * static_cost(model, traits).per_sm * num_sms;
}

DecodeSplit best_split(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                       std::int64_t columns) {
  if (traits.reuse_smem_k_for_v) return split_mla(model, request, traits, columns);
  if (traits.scheduler == TileScheduler::kPersistent) {
    return split_persistent(model, request, traits, columns);
  }
  return request.batch_invariant ? split_invariant(model, request, traits, columns)
                                 : split_static(model, request, traits, columns);
}

double modelled_us(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                   std::int64_t columns, std::int32_t num_ctas_kv) {
  const std::int64_t tiles = tiles_of_sequence(request, traits);
  const auto waves = static_cast<double>(ceil_div(columns, request.num_sms));
  if (traits.reuse_smem_k_for_v) {
    return waves * mla_time(model, request.batch, tiles * request.batch, num_ctas_kv);
  }
  if (traits.scheduler == TileScheduler::kPersistent) {
    return waves * group_time(model, request, traits, tiles * request.batch, num_ctas_kv);
  }
  return split_time(model, static_cost(model, traits), request.num_sms, tiles,
                    columns * request.batch, num_ctas_kv);
}

}  // namespace cubist::selector
