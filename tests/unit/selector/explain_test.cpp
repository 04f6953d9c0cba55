#include "selector/explain.h"

#include <algorithm>

#include "kernels.h"
#include "support/catch.h"

namespace cubist {
namespace {

using selector::ExplainStep;

bool mentions(const std::vector<ExplainStep>& steps, std::string_view topic,
              std::string_view text) {
  return std::any_of(steps.begin(), steps.end(), [&](const ExplainStep& step) {
    return step.topic == topic && step.text.find(text) != std::string::npos;
  });
}

AttentionProblem few_tokens() {
  AttentionProblem p;
  p.num_q_heads = 96;
  p.batch = 2;
  p.max_q_len = 4;
  p.max_kv_len = 1024;
  p.page_size = 32;
  return p;
}

test::TestPack release() { return test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13); }

}  // namespace

TEST_CASE("an explanation tells the steps in order and ends with what select chooses") {
  const auto pack = release();
  const auto table = pack.table();
  const auto explanation = selector::explain(table, few_tokens(), test::b200());
  REQUIRE(explanation.has_value());
  const auto selection = selector::select(table, few_tokens(), test::b200());
  REQUIRE(selection.has_value());
  REQUIRE(explanation->selection.has_value());
  CHECK(explanation->selection->best().record == selection->best().record);
  CHECK(mentions(explanation->request, "phase", "12 per KV head"));
  const auto& steps = explanation->packs.at(0).steps;
  CHECK(mentions(steps, "mask", "causal"));
  CHECK(mentions(steps, "tile_q", "48 rows: default tile_q 64"));
  CHECK(mentions(steps, "cost_model", "chosen"));
  CHECK(mentions(steps, "ctas", "wave"));
  CHECK(mentions(steps, "choice", selection->best().record->name));
  const auto position = [&](std::string_view topic) {
    return std::find_if(steps.begin(), steps.end(),
                        [&](const ExplainStep& step) { return step.topic == topic; });
  };
  CHECK(position("mask") < position("tile_q"));
  CHECK(position("tile_q") < position("cost_model"));
  CHECK(position("cost_model") < position("look_up"));
  CHECK(position("look_up") < position("ctas"));
}

TEST_CASE("the runner-up serves and is another kernel") {
  const auto pack = release();
  const auto explanation = selector::explain(pack.table(), few_tokens(), test::b200());
  REQUIRE(explanation->runner_up.has_value());
  CHECK(explanation->runner_up->record != explanation->selection->best().record);
  CHECK(explanation->runner_up->time > 0);
  CHECK(explanation->chosen_time > 0);
  CHECK(explanation->packs.at(0).tiles.size() > 2);
}

TEST_CASE("a miss names the five nearest kernels, what differs and what to change") {
  const auto pack = release();
  AttentionProblem problem = few_tokens();
  problem.page_size = 64;  // built for no GQA kernel
  const auto explanation = selector::explain(pack.table(), problem, test::b200());
  REQUIRE(explanation.has_value());
  CHECK_FALSE(explanation->selection.has_value());
  REQUIRE(explanation->refusal.has_value());
  const auto& nearest = explanation->packs.at(0).nearest;
  REQUIRE(nearest.size() == 5);
  for (std::size_t i = 0; i < nearest.size(); ++i) {
    REQUIRE_FALSE(nearest[i].differences.empty());
    if (i > 0) CHECK(nearest[i - 1].distance <= nearest[i].distance);
  }
  const auto& first = nearest[0].differences.at(0);
  CHECK(first.field == "page_size");
  CHECK(first.needed == "64");
  CHECK(first.advice.find("page_size") == 0);
}

TEST_CASE("what the advice of a near miss says makes the problem served") {
  const auto pack = release();
  const auto table = pack.table();
  AttentionProblem problem = few_tokens();
  problem.page_size = 64;
  const auto explanation = selector::explain(table, problem, test::b200());
  const auto& nearest = explanation->packs.at(0).nearest.at(0);
  REQUIRE(nearest.differences.size() == 1);
  problem.page_size = std::stoi(nearest.differences[0].found);
  CHECK(selector::select(table, problem, test::b200()).has_value());
}

TEST_CASE("barred kernels that would serve are shown with their reason") {
  const auto pack = release();
  const auto chosen = selector::select(pack.table(), few_tokens(), test::b200());
  REQUIRE(chosen.has_value());
  const selector::PackView view = pack.view();
  const std::vector<selector::BarredKernel> barred = {
      {chosen->best().record->sha256, "wrong results, issue 12"}};
  const auto table = selector::KernelTable::build({&view, 1}, barred);
  REQUIRE(table.has_value());
  const auto explanation = selector::explain(*table, few_tokens(), test::b200());
  REQUIRE(explanation.has_value());
  REQUIRE(explanation->barred.size() == 1);
  CHECK(explanation->barred[0].record == chosen->best().record);
  CHECK(explanation->barred[0].reason == "wrong results, issue 12");
  REQUIRE(explanation->selection.has_value());
  CHECK(explanation->selection->best().record != chosen->best().record);
  CHECK(explanation->selection->best().fallback == FallbackReason::kRuleFindsNoKernel);
}

TEST_CASE("an invalid problem is an error, not an explanation") {
  const auto pack = release();
  AttentionProblem problem = few_tokens();
  problem.page_size = 48;
  const auto explanation = selector::explain(pack.table(), problem, test::b200());
  REQUIRE_FALSE(explanation.has_value());
  CHECK(explanation.error().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("any problem can be explained, and the explanation agrees with select") {
  std::mt19937 random(31);
  const auto pack = test::thinned(release(), 0.3, random);
  const auto table = pack.table();
  for (int i = 0; i < 1000; ++i) {
    const AttentionProblem problem = test::random_problem(random);
    const DeviceProfile device = test::random_device(random);
    const auto selection = selector::select(table, problem, device);
    const auto explanation = selector::explain(table, problem, device);
    REQUIRE(explanation.has_value());
    REQUIRE(explanation->selection.has_value() == selection.has_value());
    REQUIRE(explanation->refusal.has_value() != selection.has_value());
    if (selection) {
      REQUIRE(explanation->selection->num_plans == selection->num_plans);
      for (std::uint32_t k = 0; k < selection->num_plans; ++k) {
        REQUIRE(explanation->selection->plans[k].record == selection->plans[k].record);
        REQUIRE(explanation->selection->plans[k].grid == selection->plans[k].grid);
        REQUIRE(explanation->selection->plans[k].fallback == selection->plans[k].fallback);
      }
    } else {
      REQUIRE(explanation->refusal->message() == selection.error().message());
    }
  }
}

}  // namespace cubist
