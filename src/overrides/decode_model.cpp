#include "overrides/decode_model.h"

#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "document/json_text.h"

namespace cubist::overrides {
namespace {

using selector::DecodeModel;
using selector::StaticCost;

constexpr double kMaxMicroseconds = 1e6;

struct Number {
  std::string_view key;
  double DecodeModel::*member;
};
constexpr std::array<Number, 15> kNumbers = {{{"static_start", &DecodeModel::static_start},
                                              {"wave", &DecodeModel::wave},
                                              {"join", &DecodeModel::join},
                                              {"static_part", &DecodeModel::static_part},
                                              {"start", &DecodeModel::start},
                                              {"sequence", &DecodeModel::sequence},
                                              {"group_join", &DecodeModel::group_join},
                                              {"group_part", &DecodeModel::group_part},
                                              {"element", &DecodeModel::element},
                                              {"mla_start", &DecodeModel::mla_start},
                                              {"mla_sequence", &DecodeModel::mla_sequence},
                                              {"mla_tile", &DecodeModel::mla_tile},
                                              {"mla_join", &DecodeModel::mla_join},
                                              {"mla_part", &DecodeModel::mla_part},
                                              {"mla_uneven", &DecodeModel::mla_uneven}}};

void read_microseconds(const DocumentNode& node, double& out) {
  if (!node.read_number(out)) return;
  if (std::isfinite(out) && out >= 0 && out <= kMaxMicroseconds) return;
  node.complain(fmt::format("is {}; it must be 0 to {:.0f} microseconds", out, kMaxMicroseconds));
}

StaticCost read_static_cost(const DocumentNode& node) {
  StaticCost cost;
  node.allow_only({"bits", "head_dim", "tile_q", "alone", "more", "per_sm"});
  std::int32_t bits = 16;
  node.required("bits").read_integer(bits, 8, 16);
  if (bits != 8 && bits != 16) node.member("bits").complain("must be 8 or 16");
  cost.bits = static_cast<std::uint32_t>(bits);
  node.required("head_dim").read_integer(cost.head_dim, 1, 8192);
  node.required("tile_q").read_integer(cost.tile_q, 1, 4096);
  read_microseconds(node.required("alone"), cost.alone);
  read_microseconds(node.required("more"), cost.more);
  node.required("per_sm").read_integer(cost.per_sm, 1, 32);
  return cost;
}

void read_static_costs(const DocumentNode& node, DecodeModel& model) {
  const std::vector<DocumentNode> items = node.items();
  if (items.empty() || items.size() > model.static_costs.size()) {
    node.complain(
        fmt::format("has {} kernels; 1 to {} are read", items.size(), model.static_costs.size()));
    return;
  }
  // The rules take the first row whose tile is large enough.
  std::tuple<int, int, int> before = {-99, 0, 0};
  for (const DocumentNode& item : items) {
    const StaticCost cost = read_static_cost(item);
    const std::tuple place = {-static_cast<int>(cost.bits), cost.head_dim, cost.tile_q};
    if (place <= before) {
      item.complain("out of order; 16 bits before 8, then by head_dim, then by tile_q, each once");
    }
    before = place;
    model.static_costs[model.num_static_costs++] = cost;
  }
}

}  // namespace

DecodeModel read_decode_model(const DocumentNode& node, const std::string& file_name) {
  DecodeModel model;
  std::vector<std::string_view> known = {"gpu", "made_by", "static_kernels"};
  for (const Number& number : kNumbers) known.push_back(number.key);
  node.allow_only(known);
  std::string gpu;
  std::string made_by;
  node.required("gpu").read(gpu);
  node.member("made_by").read(made_by);
  model.source = fmt::format("the model of {}, tuned on {}", file_name, in_quotes(gpu));
  for (const Number& number : kNumbers) {
    read_microseconds(node.required(number.key), model.*number.member);
  }
  read_static_costs(node.required("static_kernels"), model);
  return model;
}

std::string write_decode_model(const DecodeModel& model, const std::string& gpu,
                               const std::string& made_by) {
  std::string text = fmt::format(
      "{{\"schema\": \"cubist.overrides\", \"schema_version\": 2,\n \"decode_model\": {{\n"
      "  \"gpu\": {},\n  \"made_by\": {},\n",
      json_string(gpu), json_string(made_by));
  for (const Number& number : kNumbers) {
    text += fmt::format("  \"{}\": {:.6g},\n", number.key, model.*number.member);
  }
  text += "  \"static_kernels\": [";
  for (std::size_t i = 0; i < model.num_static_costs; ++i) {
    const StaticCost& cost = model.static_costs[i];
    text += fmt::format(
        "{}\n   {{\"bits\": {}, \"head_dim\": {}, \"tile_q\": {}, \"alone\": {:.6g}, \"more\": "
        "{:.6g}, \"per_sm\": {}}}",
        i == 0 ? "" : ",", cost.bits, cost.head_dim, cost.tile_q, cost.alone, cost.more,
        cost.per_sm);
  }
  return text + "]}}\n";
}

}  // namespace cubist::overrides
