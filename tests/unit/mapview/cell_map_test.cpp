#include "mapview/cell_map.h"

#include "support/catch.h"
#include "support/published.h"
#include "workingset/classes.h"

using namespace cubist;
using namespace cubist::mapview;

namespace {

workingset::Query query_for(const std::string& model, std::int32_t page_size = 32) {
  workingset::ClassOptions options;
  options.page_size = {page_size};
  workingset::Query query;
  query.device = test::shipped_presets().find_device("b200").value().profile;
  query.classes =
      workingset::make_classes(test::shipped_presets().find_model(model).value(), options).value();
  return query;
}

const Axes kAxes{{1, 4, 16, 64}, {1, 6}, {1, 100, 513, 1025, 8192}};

}  // namespace

TEST_CASE("each cell is what selection answers there, with another kernel as runner-up") {
  const auto& published = test::flashinfer_0_6_13();
  const workingset::Query query = query_for("gemma-4-31b");
  for (const workingset::ProblemClass& cls : query.classes) {
    const auto map = make_cell_map(published.table, query, cls, kAxes);
    REQUIRE(map);
    REQUIRE(map->cells.size() == kAxes.cells());
    for (std::size_t q = 0; q < kAxes.max_q_len.size(); ++q) {
      for (std::size_t b = 0; b < kAxes.batch.size(); ++b) {
        for (std::size_t kv = 0; kv < kAxes.max_kv_len.size(); ++kv) {
          AttentionProblem problem = cls.problem;
          problem.batch = kAxes.batch[b];
          problem.max_q_len = kAxes.max_q_len[q];
          problem.max_kv_len = kAxes.max_kv_len[kv];
          const auto selection = selector::select(published.table, problem, query.device);
          const Cell& cell = map->at(q, b, kv);
          REQUIRE(selection);
          REQUIRE(cell.kernel != Cell::kNone);
          CHECK(map->kernels[static_cast<std::size_t>(cell.kernel)] == selection->best().record);
          CHECK(cell.fallback == selection->best().fallback);
          CHECK(cell.grid == selection->best().grid);
          CHECK(cell.time > 0);
          CHECK(cell.runner_up != cell.kernel);
        }
      }
    }
  }
}

TEST_CASE("problems without a kernel are gaps") {
  const workingset::Query query = query_for("llama-3.1-8b", 8);
  const auto map = make_cell_map(test::flashinfer_0_6_13().table, query, query.classes[0], kAxes);
  REQUIRE(map);
  for (const Cell& cell : map->cells) CHECK(cell.kernel == Cell::kNone);
  CHECK(map->kernels.empty());
}

TEST_CASE("maps with no cells, too many, or impossible problems are refused") {
  const auto& table = test::flashinfer_0_6_13().table;
  const workingset::Query query = query_for("llama-3.1-8b");
  const auto error_of = [&](const Axes& axes) {
    const auto map = make_cell_map(table, query, query.classes[0], axes);
    return map ? "" : map.error().message();
  };
  CHECK(error_of({{}, {1}, {1}}).find("0 cells") != std::string::npos);
  Axes huge = kAxes;
  huge.max_kv_len.assign(200'000, 1);
  CHECK(error_of(huge).find("1600000 cells") != std::string::npos);
  CHECK(error_of({{1, 70000}, {1}, {1}}).find("batch is 70000") != std::string::npos);
}
