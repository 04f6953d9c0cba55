#include "selector/decode_costs.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "selector/geometry.h"

namespace cubist::selector {
namespace {

// A CTA gets at least this many keys of a split sequence, and a sequence at most this many CTAs:
// the partial results of more cost more than they save.
constexpr std::int64_t kMinKeysPerCta = 256;
constexpr std::int64_t kMaxCtasPerKv = 64;
constexpr std::int64_t kMaxWaves = 4;

// A persistent kernel's time for 64 keys and for a sequence (its rows of Q, its first keys and its
// output), over those of the model, which are those of 64 rows and 16-bit keys.
struct PersistentCost {
  std::uint32_t bits;  ///< of an element of K
  std::int32_t head_dim;
  std::int32_t tile_q;
  double tile;
  double sequence;
};
constexpr std::array<PersistentCost, 17> kPersistentCosts = {{
    {16, 64, 8, 0.94, 0.23},
    {16, 64, 16, 0.94, 0.38},
    {16, 64, 24, 0.94, 0.54},
    {16, 64, 32, 0.94, 0.77},
    {16, 64, 64, 0.98, 0.46},
    {16, 64, 128, 1.06, 0.77},
    {16, 128, 16, 0.95, 0.31},
    {16, 128, 24, 0.95, 0.41},
    {16, 128, 32, 0.96, 0.62},
    {16, 128, 64, 0.98, 0.46},
    {16, 128, 128, 1.10, 1.15},
    {8, 64, 16, 0.55, 0.51},
    {8, 64, 32, 0.62, 0.92},
    {8, 64, 64, 0.98, 1.54},
    {8, 128, 16, 0.49, 0.54},
    {8, 128, 32, 0.51, 0.90},
    {8, 128, 48, 0.61, 2.05},
}};
// A persistent kernel copies a page's rows 128 bytes at a time where the page is smaller than a
// tile; the copy engine takes so many microseconds for each copy, however short.
constexpr double kCopy = 0.063;

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

double static_us(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                 std::int64_t columns, std::int64_t split) {
  const std::int64_t tiles = ceil_div(tiles_of_sequence(request, traits), split);
  double time = static_time(model, static_cost(model, traits), request.num_sms, tiles,
                            columns * request.batch * split);
  if (split > 1) time += model.join + model.static_part * static_cast<double>(split);
  return time;
}

DecodeSplit split_static(const DecodeModel& model, const Request& request,
                         const KernelTraits& traits, std::int64_t columns) {
  const std::int64_t tiles = tiles_of_sequence(request, traits);
  const std::int64_t ctas = columns * request.batch;
  const std::int64_t most =
      std::clamp<std::int64_t>(ceil_div(tiles * traits.tile_kv, kMinKeysPerCta), 1, kMaxCtasPerKv);
  DecodeSplit best = {columns, 1, std::numeric_limits<double>::max()};
  for (std::int64_t split = 1; split <= most; ++split) {
    if (split > 1 && ctas * split > max_split_ctas(model, traits, request.num_sms)) break;
    const double time = static_us(model, request, traits, columns, split);
    if (time < best.microseconds) {
      best = {columns, static_cast<std::int32_t>(split), time};
    }
  }
  best.microseconds *= kStaticDoubt;
  return best;
}

double mla_us(const DecodeModel& model, const Request& request, const KernelTraits& traits,
              std::int64_t columns, std::int64_t groups) {
  const std::int64_t batch = request.batch;
  const std::int64_t tiles = tiles_of_sequence(request, traits) * batch;
  const bool even = groups % batch == 0 || batch % groups == 0;
  double time = model.mla_start +
                model.mla_sequence * static_cast<double>(ceil_div(batch, groups)) +
                model.mla_tile * static_cast<double>(ceil_div(tiles, groups));
  if (!even || groups > batch) {
    time += model.mla_join + model.mla_part * static_cast<double>(ceil_div(groups, batch));
  }
  if (!even) time += model.mla_uneven;
  return time * static_cast<double>(ceil_div(columns, request.num_sms));
}

DecodeSplit split_mla(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                      std::int64_t columns) {
  const std::int64_t tiles = tiles_of_sequence(request, traits) * request.batch;
  const std::int64_t most = std::clamp<std::int64_t>(request.num_sms / columns, 1, tiles);
  DecodeSplit best = {columns, 1, std::numeric_limits<double>::max()};
  for (std::int64_t groups = 1; groups <= most; ++groups) {
    const double time = mla_us(model, request, traits, columns, groups);
    if (time < best.microseconds) {
      best = {columns, static_cast<std::int32_t>(groups), time};
    }
  }
  return best;
}

/// Microseconds that copying 64 keys takes at least.
double copy_us(const Request& request, const KernelTraits& traits) {
  if (request.page_size >= traits.tile_kv) return 0.0;
  const std::int64_t row_bits = std::int64_t{dtype_bits(traits.dtype_k)} * traits.head_dim_qk;
  return kCopy * static_cast<double>(2 * ceil_div(row_bits, 128 * 8)) * traits.tile_kv /
         request.page_size;
}

double persistent_us(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                     std::int64_t columns, std::int64_t groups) {
  const std::int64_t tiles = tiles_of_sequence(request, traits) * request.batch;
  const PersistentCost cost = cost_of(kPersistentCosts, traits);
  const double tile =
      std::max(cost.tile * model.element * traits.head_dim_qk, copy_us(request, traits));
  const double a_group = static_cast<double>(request.batch) / static_cast<double>(groups);
  double time = model.start + cost.sequence * model.sequence * std::max(1.0, a_group) +
                static_cast<double>(ceil_div(tiles, groups)) * tile;
  if (groups > 1) time += model.group_join + model.group_part * std::max(1.0, 1.0 / a_group);
  return static_cast<double>(ceil_div(columns, request.num_sms)) * time;
}

DecodeSplit split_persistent(const DecodeModel& model, const Request& request,
                             const KernelTraits& traits, std::int64_t columns) {
  const std::int64_t tiles = tiles_of_sequence(request, traits) * request.batch;
  const std::int64_t groups = std::clamp<std::int64_t>(request.num_sms / columns, 1, tiles);
  return {columns, static_cast<std::int32_t>(groups),
          persistent_us(model, request, traits, columns, groups)};
}

DecodeModel make_shipped_model() {
  DecodeModel model;
  model.source = "the shipped model";
  model.static_start = 1.2;
  model.wave = 2.4;
  model.join = 4.6;
  model.static_part = 0.33;
  model.start = 1.0;
  model.sequence = 3.9;
  model.group_join = 3.1;
  model.group_part = 0.65;
  model.element = 0.94 / 128.0;
  // Fitted by hand to docs/results/h200-mla.md.
  model.mla_start = 6.0;
  model.mla_sequence = 8.0;
  model.mla_tile = 1.72;
  model.mla_join = 3.0;
  model.mla_part = 0.45;
  model.mla_uneven = 18.0;
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
  std::copy(kStaticCosts.begin(), kStaticCosts.end(), model.static_costs.begin());
  model.num_static_costs = kStaticCosts.size();
  return model;
}

}  // namespace

const DecodeModel& shipped_decode_model() {
  static const DecodeModel model = make_shipped_model();
  return model;
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
  return split_static(model, request, traits, columns);
}

double modelled_us(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                   std::int64_t columns, std::int32_t num_ctas_kv) {
  if (traits.reuse_smem_k_for_v) return mla_us(model, request, traits, columns, num_ctas_kv);
  if (traits.scheduler == TileScheduler::kPersistent) {
    return persistent_us(model, request, traits, columns, num_ctas_kv);
  }
  return static_us(model, request, traits, columns, num_ctas_kv);
}

}  // namespace cubist::selector
