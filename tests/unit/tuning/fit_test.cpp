#include "tuning/fit.h"

#include <cmath>
#include <random>
#include <vector>

#include "manifest/parse.h"
#include "selector/decode_costs.h"
#include "selector/rules_cubist_decode.h"
#include "support/catch.h"
#include "tuning/grid.h"
#include "tuning/judge.h"

namespace cubist {
namespace {

using selector::DecodeModel;
using tuning::Grid;
using tuning::Measured;

constexpr std::int64_t kManyBytes = std::int64_t{1} << 40;

/// The shipped decode kernels, and every way of the quick grid on an H200, timed by a model.
struct Sweep {
  explicit Sweep(const DecodeModel& truth, double noise = 0.0) {
    manifest = load_manifest(CUBIST_SOURCE_DIR "/manifests/cubist-decode.json").value();
    const Pack& pack = manifest.packs.at(0);
    const selector::PackView view = {pack.name, pack.family, pack.revision, pack.param_layout,
                                     pack.kernels};
    table = selector::KernelTable::build({&view, 1}).value();
    DeviceProfile h200;
    h200.sm = 90;
    h200.num_sms = 132;
    std::mt19937 random(5);
    std::normal_distribution<double> error(0.0, noise);
    std::size_t number = 0;
    for (const AttentionProblem& problem : tuning::grid_problems(Grid::kQuick, kManyBytes)) {
      Measured row;
      REQUIRE(selector::prepare_request(problem, h200, row.request));
      row.problem = number++;
      for (const auto& option : selector::decode_options(table.packs()[0], row.request)) {
        if (option.record == nullptr) continue;
        row.record = option.record;
        row.columns = option.split.columns;
        std::vector<std::int32_t> splits = {option.split.num_ctas_kv};
        if (row.is_static()) splits = tuning::grid_splits(Grid::kQuick);
        for (const std::int32_t split : splits) {
          row.num_ctas_kv = split;
          row.us =
              selector::modelled_us(truth, row.request, option.record->traits, row.columns, split) *
              std::exp(error(random));
          rows.push_back(row);
        }
      }
    }
  }

  Manifest manifest;
  selector::KernelTable table;
  std::vector<Measured> rows;
};

/// A GPU of half the memory bandwidth.
DecodeModel slower() {
  DecodeModel model = selector::shipped_decode_model();
  model.element *= 2;
  for (std::size_t i = 0; i < model.num_static_costs; ++i) {
    model.static_costs[i].alone *= 1.9;
    model.static_costs[i].more *= 2.1;
  }
  return model;
}

}  // namespace

TEST_CASE("a model fitted to times of another model chooses as that one does") {
  const Sweep sweep(slower());
  REQUIRE(sweep.rows.size() > 200);
  const DecodeModel fitted = tuning::fit_decode_model(selector::shipped_decode_model(), sweep.rows);
  const tuning::Judgement judged = tuning::judge(fitted, sweep.rows);
  CHECK(judged.problems == tuning::grid_problems(Grid::kQuick, kManyBytes).size());
  // The margin that static kernels must have keeps even the true model from the best here and
  // there.
  const tuning::Judgement ideal = tuning::judge(slower(), sweep.rows);
  CHECK(judged.within_5_percent >= ideal.within_5_percent - 0.03);
  CHECK(judged.mean < ideal.mean + 0.005);
  CHECK(judged.median == Approx(1.0));
}

TEST_CASE("noise of a few percent leaves a fitted model good") {
  const Sweep sweep(slower(), 0.03);
  const DecodeModel fitted = tuning::fit_decode_model(selector::shipped_decode_model(), sweep.rows);
  const tuning::Judgement judged = tuning::judge(fitted, sweep.rows);
  CHECK(judged.within_5_percent > 0.75);
  CHECK(judged.mean < 1.05);
  CHECK(judged.mean <= tuning::judge(selector::shipped_decode_model(), sweep.rows).mean);
}

TEST_CASE("what nobody measured keeps what the model had") {
  const DecodeModel& shipped = selector::shipped_decode_model();
  CHECK(tuning::fit_decode_model(shipped, {}) == shipped);
  Sweep sweep(slower());
  std::erase_if(sweep.rows, [](const Measured& row) {
    return row.record->traits.head_dim_qk != 64 || row.record->traits.dtype_k != Dtype::kBf16;
  });
  const DecodeModel fitted = tuning::fit_decode_model(shipped, sweep.rows);
  for (std::size_t i = 0; i < shipped.num_static_costs; ++i) {
    const selector::StaticCost& cost = shipped.static_costs[i];
    if (cost.bits == 16 && cost.head_dim == 64) continue;
    CHECK(fitted.static_costs[i] == cost);
  }
  CHECK(fitted.mla_tile == shipped.mla_tile);
}

TEST_CASE("a kernel that the model has no row for gets one, where the rules look for it") {
  DecodeModel without = selector::shipped_decode_model();
  for (std::size_t i = 1; i < without.num_static_costs; ++i) {
    without.static_costs[i - 1] = without.static_costs[i];
  }
  --without.num_static_costs;
  const Sweep sweep(selector::shipped_decode_model());
  const DecodeModel fitted = tuning::fit_decode_model(without, sweep.rows);
  CHECK(fitted.num_static_costs == selector::shipped_decode_model().num_static_costs);
  CHECK(fitted.static_costs[0].tile_q == selector::shipped_decode_model().static_costs[0].tile_q);
}

TEST_CASE("no problem of a grid has more KV than it may") {
  const auto bytes = [](const AttentionProblem& p) {
    const std::int64_t width = p.is_mla ? 576 : std::int64_t{p.num_kv_heads} * p.head_dim_qk * 2;
    return width * p.batch * p.max_kv_len * dtype_bits(p.dtype_k) / 8;
  };
  for (const Grid grid : {Grid::kQuick, Grid::kFull}) {
    for (const AttentionProblem& problem : tuning::grid_problems(grid, 1 << 26)) {
      CHECK(bytes(problem) <= 1 << 26);
    }
  }
  CHECK(tuning::grid_problems(Grid::kFull, kManyBytes).size() >
        3 * tuning::grid_problems(Grid::kQuick, kManyBytes).size());
  CHECK(tuning::grid_problems(Grid::kQuick, 0).empty());
}

}  // namespace cubist
