#include "overrides/overrides.h"

#include <string>
#include <thread>

#include "support/catch.h"
#include "support/published.h"

using namespace cubist;
using namespace cubist::overrides;

namespace {

AttentionProblem problem() {
  AttentionProblem p;
  p.num_q_heads = 64;
  p.num_kv_heads = 8;
  p.head_dim_qk = 64;
  p.dtype_q = p.dtype_k = p.dtype_v = Dtype::kE4m3;
  p.dtype_o = Dtype::kBf16;
  p.page_size = 32;
  p.batch = 4;
  p.max_kv_len = 8192;
  return p;
}

DeviceProfile device() { return test::shipped_presets().find_device("b200").value().profile; }

Result<Overrides> try_bind(const std::string& members) {
  auto file = parse_rules(R"({"schema":"cubist.overrides","schema_version":1,)" + members + "}",
                          "rules.json");
  if (!file) FAIL(file.error().message());
  return Overrides::bind(std::move(*file), test::flashinfer_0_6_13().packs);
}

Overrides bound(const std::string& members) {
  auto overrides = try_bind(members);
  if (!overrides) FAIL(overrides.error().message());
  return std::move(*overrides);
}

const KernelRecord& plain_choice(const AttentionProblem& p) {
  return *selector::select(test::flashinfer_0_6_13().table, p, device()).value().best().record;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a rule that does not apply changes nothing") {
  const Overrides overrides =
      bound(R"("rules":[{"name":"r","when":{"batch":{"min":100}},"force":{"tile_q":64}}])");
  CHECK(overrides.select(problem(), device())->best().record == &plain_choice(problem()));
  CHECK(overrides.describe(problem(), device()).empty());
}

TEST_CASE("a forced tile is taken where a kernel with it serves") {
  REQUIRE(plain_choice(problem()).traits.tile_q == 8);
  const Overrides overrides = bound(
      R"("rules":[{"name":"wide","reason":"measured","when":{"head_dim_qk":64},
                   "force":{"tile_q":64,"multi_ctas_kv_mode":"gmem"}}])");
  const auto selection = overrides.select(problem(), device());
  REQUIRE(selection);
  CHECK(selection->best().record->traits.tile_q == 64);
  CHECK(selection->best().record->traits.multi_ctas_kv_mode == MultiCtasKvMode::kGlobalMemory);
  CHECK(selection->best().fallback == FallbackReason::kRuleFindsNoKernel);
  const auto sentences = overrides.describe(problem(), device());
  REQUIRE(sentences.size() == 1);
  CHECK(contains(sentences[0], "rule 'wide' forces"));
  CHECK(contains(sentences[0], "(measured)"));
}

TEST_CASE("a forced mode that the published rules ask for anyway stays their choice") {
  const Overrides overrides =
      bound(R"("rules":[{"name":"r","force":{"multi_ctas_kv_mode":["gmem","off","cga_smem"]}}])");
  const auto selection = overrides.select(problem(), device());
  REQUIRE(selection);
  CHECK(selection->best().record == &plain_choice(problem()));
  CHECK(selection->best().fallback == FallbackReason::kNone);
}

TEST_CASE("a forbidden mode is not taken, in any plan") {
  const Overrides overrides =
      bound(R"("rules":[{"name":"r","forbid":{"multi_ctas_kv_mode":"cga_smem"}}])");
  for (std::int32_t batch = 1; batch < 20; ++batch) {
    AttentionProblem p = problem();
    p.batch = batch;
    const auto selection = overrides.select(p, device());
    REQUIRE(selection);
    for (std::uint32_t i = 0; i < selection->num_plans; ++i) {
      CHECK(selection->plans[i].record->traits.multi_ctas_kv_mode !=
            MultiCtasKvMode::kClusterSharedMemory);
    }
  }
}

TEST_CASE("a barred hash is never chosen and its reason is shown") {
  const KernelRecord& chosen = plain_choice(problem());
  const Overrides overrides = bound(R"("bar":[{"sha256":")" + chosen.sha256.hex() +
                                    R"(","reason":"wrong results on our fleet"}])");
  const auto selection = overrides.select(problem(), device());
  REQUIRE(selection);
  for (std::uint32_t i = 0; i < selection->num_plans; ++i) {
    CHECK(selection->plans[i].record != &chosen);
  }
  const auto explanation = overrides.explain(problem(), device());
  REQUIRE(explanation);
  bool shown = false;
  for (const auto& note : explanation->barred) {
    shown =
        shown || (note.record == &chosen && contains(note.reason, "wrong results on our fleet"));
  }
  CHECK(shown);
}

TEST_CASE("forbidding is stronger than forcing, and the first force wins") {
  const Overrides overrides = bound(
      R"("rules":[{"name":"first","force":{"tile_q":[32,64]}},
                  {"name":"second","force":{"tile_q":16}},
                  {"name":"third","forbid":{"tile_q":64}}])");
  const auto selection = overrides.select(problem(), device());
  REQUIRE(selection);
  CHECK(selection->best().record->traits.tile_q == 32);
  const auto sentences = overrides.describe(problem(), device());
  REQUIRE(sentences.size() == 3);
  CHECK(contains(sentences[1], "its force does not count, as rule 'first' comes first"));
}

TEST_CASE("explain shows the rules that applied") {
  const Overrides overrides =
      bound(R"("rules":[{"name":"r","reason":"because","force":{"tile_q":16}}])");
  const auto explanation = overrides.explain(problem(), device());
  REQUIRE(explanation);
  bool shown = false;
  for (const auto& step : explanation->request) {
    shown =
        shown || (step.topic == "override" && step.text == "rule 'r' forces tile_q 16 (because)");
  }
  CHECK(shown);
}

TEST_CASE("forcing what does not serve fails and names the rule") {
  const Overrides none = bound(
      R"("rules":[{"name":"odd","when":{"phase":"decode"},"force":{"kernel_type":"context"}}])");
  const auto selection = none.select(problem(), device());
  REQUIRE_FALSE(selection);
  CHECK(selection.error().code() == StatusCode::kUnsupported);
  CHECK(contains(selection.error().message(), "with override rules 'odd' of rules.json"));
  const auto explanation = none.explain(problem(), device());
  REQUIRE(explanation);
  REQUIRE(explanation->refusal);
  CHECK(explanation->refusal->message() == selection.error().message());

  const Overrides nothing_left =
      bound(R"("rules":[{"name":"a","force":{"tile_q":64}},{"name":"b","forbid":{"tile_q":64}}])");
  const auto refused = nothing_left.select(problem(), device());
  REQUIRE_FALSE(refused);
  CHECK(contains(refused.error().message(), "rules 'a', 'b' apply to this problem and leave no"));
}

TEST_CASE("rules for kernels that the manifest does not have are refused by file and rule") {
  const auto tile = try_bind(R"("rules":[{"name":"r","forbid":{"tile_q":48}}])");
  REQUIRE_FALSE(tile);
  CHECK(contains(tile.error().message(), "rules.json: rule 'r': forbid matches no kernel"));
  const auto name = try_bind(R"("rules":[{"name":"r","force":{"kernel":"fmhaNone"}}])");
  REQUIRE_FALSE(name);
  CHECK(contains(name.error().message(), "kernel fmhaNone"));
  const auto hash =
      try_bind(R"("bar":[{"sha256":")" + std::string(64, 'a') + R"(","reason":"x"}])");
  REQUIRE_FALSE(hash);
  CHECK(contains(hash.error().message(), "no kernel of the manifest has the sha256"));
}

TEST_CASE("rules for problems that no kernel of the manifest serves are refused by field") {
  const auto error_of = [](const std::string& when) {
    const auto overrides =
        try_bind(R"("rules":[{"name":"r","when":)" + when + R"(,"force":{"tile_q":16}}])");
    return overrides ? "" : overrides.error().message();
  };
  CHECK(contains(error_of(R"({"head_dim_qk":65})"),
                 "rules.json: rule 'r': when: no kernel of the manifest serves a problem with "
                 "head_dim_qk 65"));
  CHECK(contains(error_of(R"({"batch":4,"dtype_o":"int8"})"), "dtype_o int8"));
  CHECK(contains(error_of(R"({"head_dim_vo":{"min":300,"max":400}})"), "head_dim_vo 300..400"));
  CHECK(
      error_of(R"({"head_dim_qk":{"min":65},"dtype_kv":["e4m3","e2m1"],"page_size":32})").empty());
  CHECK(error_of(R"({"num_q_heads":7,"batch":60000})").empty());
}

TEST_CASE("the ends of rules along a field are where a box must be cut") {
  const Overrides overrides = bound(
      R"("rules":[{"name":"a","when":{"batch":{"min":4,"max":16}},"forbid":{"tile_q":8}},
                  {"name":"b","when":{"batch":[1,20],"max_q_len":{"max":3}},
                   "forbid":{"tile_q":16}}])");
  CHECK(overrides.ends_in("batch") == std::vector<std::int32_t>{0, 1, 3, 16, 19, 20});
  CHECK(overrides.ends_in("max_q_len") == std::vector<std::int32_t>{3});
  CHECK(overrides.ends_in("max_kv_len").empty());
}

TEST_CASE("many threads may select through one object") {
  const Overrides overrides = bound(
      R"("rules":[{"name":"a","when":{"batch":{"max":4}},"forbid":{"tile_q":8}},
                  {"name":"b","when":{"max_kv_len":{"min":1000}},"forbid":{"tile_q":16}}])");
  std::vector<std::thread> threads;
  std::vector<int> failures(4, 0);
  for (std::size_t t = 0; t < failures.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::int32_t i = 1; i < 50; ++i) {
        AttentionProblem p = problem();
        p.batch = i % 8 + 1;
        p.max_kv_len = i * 100;
        const auto selection = overrides.select(p, device());
        if (!selection || (p.batch <= 4 && selection->best().record->traits.tile_q == 8)) {
          ++failures[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == std::vector<int>(4, 0));
}
