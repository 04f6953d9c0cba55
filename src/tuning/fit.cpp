#include "tuning/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "model/dtype.h"
#include "selector/decode_costs.h"
#include "tuning/judge.h"

namespace cubist::tuning {
namespace {

using selector::DecodeModel;
using selector::StaticCost;
using Rows = std::vector<const Measured*>;
using StaticKey = std::tuple<std::uint32_t, std::int32_t, std::int32_t>;  // bits, head_dim, tile_q

double error_of(const DecodeModel& model, const Rows& rows) {
  double error = 0;
  for (const Measured* row : rows) {
    const double modelled = selector::modelled_us(model, row->request, row->record->traits,
                                                  row->columns, row->num_ctas_kv);
    error += std::abs(std::log(modelled / row->us));
  }
  return error;
}

StaticKey key_of(const KernelTraits& traits) {
  return {dtype_bits(traits.dtype_k) <= 8 ? 8U : 16U, traits.head_dim_qk, traits.tile_q};
}

/// 16 bits before 8, then by head_dim and tile_q, as the rules walk them.
auto place_of(const StaticCost& cost) {
  return std::tuple(-static_cast<int>(cost.bits), cost.head_dim, cost.tile_q);
}

/// The model's row of a kernel, made where there is none; null where there is no room for one more.
StaticCost* row_of(DecodeModel& model, const StaticKey& key) {
  const StaticCost wanted = {std::get<0>(key), std::get<1>(key), std::get<2>(key), 1.0, 0.0, 1};
  const auto begin = model.static_costs.begin();
  const auto end = begin + static_cast<std::ptrdiff_t>(model.num_static_costs);
  const auto at = std::find_if(
      begin, end, [&](const StaticCost& cost) { return place_of(cost) >= place_of(wanted); });
  if (at != end && place_of(*at) == place_of(wanted)) return &*at;
  if (model.num_static_costs == model.static_costs.size()) return nullptr;
  std::move_backward(at, end, end + 1);
  *at = wanted;
  ++model.num_static_costs;
  return &*at;
}

/// first, first * step, ... : `count` of them.
std::vector<double> powers(double first, double step, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(first * std::pow(step, i));
  return values;
}

/// The best of a grid of rows, each with so many CTAs on an SM; `least`: its error.
void take_best(DecodeModel& model, StaticCost& row, const Rows& rows, double& least,
               const std::vector<double>& alone, const std::vector<double>& more,
               std::int64_t first_per_sm, std::int64_t last_per_sm) {
  StaticCost best = row;
  for (row.per_sm = first_per_sm; row.per_sm <= last_per_sm; ++row.per_sm) {
    for (const double one : alone) {
      for (const double each : more) {
        if (each > one) break;
        row.alone = one;
        row.more = each;
        const double error = error_of(model, rows);
        if (error >= least) continue;
        least = error;
        best = row;
      }
    }
  }
  row = best;
}

/// Over a wide grid, then over finer ones around what was found.
void fit_static(DecodeModel& model, const StaticKey& key, const Rows& rows) {
  StaticCost* const found = row_of(model, key);
  if (found == nullptr) return;
  StaticCost& row = *found;
  double least = std::numeric_limits<double>::max();
  take_best(model, row, rows, least, powers(0.25, 1.15, 26), powers(0.05, 1.3, 18), 1, 4);
  for (const double step : {1.03, 1.006}) {
    take_best(model, row, rows, least, powers(row.alone / std::pow(step, 5), step, 11),
              powers(row.more / std::pow(step, 10), step * step, 11), row.per_sm, row.per_sm);
  }
}

/// One number, between a fifth and five times what it is.
void fit_number(DecodeModel& model, double DecodeModel::*number, const Rows& rows) {
  if (rows.empty()) return;
  double best = model.*number;
  double least = error_of(model, rows);
  for (const double value : powers(model.*number / 5, 1.01, 325)) {
    model.*number = value;
    const double error = error_of(model, rows);
    if (error >= least) continue;
    least = error;
    best = value;
  }
  model.*number = best;
}

/// The parts of a model that are fitted.
struct Part {
  double DecodeModel::*number = nullptr;  ///< or else
  std::size_t row = 0;                    ///< of static_costs
};

std::vector<Part> parts_of(const DecodeModel& model) {
  std::vector<Part> parts = {{&DecodeModel::element, 0}, {&DecodeModel::mla_tile, 0}};
  for (std::size_t i = 0; i < model.num_static_costs; ++i) parts.push_back({nullptr, i});
  return parts;
}

/// Takes over those parts of `other` with which the choices are no worse. Both have the same rows.
void take_better_parts(DecodeModel& model, const DecodeModel& other,
                       std::span<const Measured> rows) {
  double mean = judge(model, rows).mean;
  for (const Part& part : parts_of(model)) {
    DecodeModel tried = model;
    if (part.number != nullptr) {
      tried.*part.number = other.*part.number;
    } else {
      tried.static_costs[part.row] = other.static_costs[part.row];
    }
    const double tried_mean = judge(tried, rows).mean;
    if (tried_mean > mean) continue;
    mean = tried_mean;
    model = tried;
  }
}

}  // namespace

DecodeModel fit_decode_model(const DecodeModel& from, std::span<const Measured> rows) {
  DecodeModel model = from;
  std::map<StaticKey, Rows> statics;
  Rows persistent;
  Rows mla;
  for (const Measured& row : rows) {
    const KernelTraits& traits = row.record->traits;
    Rows& group = traits.reuse_smem_k_for_v ? mla
                  : row.is_static()         ? statics[key_of(traits)]
                                            : persistent;
    group.push_back(&row);
  }
  for (const auto& [key, group] : statics) fit_static(model, key, group);
  fit_number(model, &DecodeModel::element, persistent);
  fit_number(model, &DecodeModel::mla_tile, mla);
  // Times that fit better may choose worse. From both ends: the old model with what is better of
  // the new, and the new one with what is better of the old.
  if (model.num_static_costs != from.num_static_costs) return model;
  DecodeModel old_improved = from;
  take_better_parts(old_improved, model, rows);
  take_better_parts(model, from, rows);
  return judge(old_improved, rows).mean < judge(model, rows).mean ? old_improved : model;
}

}  // namespace cubist::tuning
