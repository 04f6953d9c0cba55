#include "codec/plan_json.h"

#include <nlohmann/json.hpp>

#include "codec/explain_json.h"
#include "codec/json_writer.h"
#include "support/catch.h"

namespace cubist {
namespace {

using nlohmann::json;

KernelRecord mla_kernel() {
  KernelRecord record;
  record.name = "kernel";
  record.traits.dtype_q = Dtype::kE4m3;
  record.traits.dtype_o = Dtype::kBf16;
  record.traits.arch = {100, SmArch::Kind::kFamily};
  record.traits.head_dim_qk = 576;
  record.traits.head_dim_vo = 512;
  record.traits.head_dim_per_cta_v = 256;
  record.traits.tile_q = record.traits.step_q = 64;
  record.traits.two_cta_mma = true;
  record.traits.sparse_type = SparseType::kStaticTokens;
  return record;
}

}  // namespace

TEST_CASE("text is escaped where JSON asks for it") {
  std::string out;
  JsonWriter(out).value(std::string_view("a\"\\\n\t\x01\xc3\xa9"));
  CHECK(out == "\"a\\\"\\\\\\n\\t\\u0001\xc3\xa9\"");
  CHECK(json::parse(out) == "a\"\\\n\t\x01\xc3\xa9");
}

TEST_CASE("nested lists and objects get their commas") {
  std::string out;
  JsonWriter json_writer(out);
  json_writer.begin('{').list("a", std::array{1, 2}).key("b").begin('[').begin('{').end('}');
  json_writer.begin('{').field("c", true).end('}').end(']').field("d", 0.5).end('}');
  CHECK(out == R"({"a":[1,2],"b":[{},{"c":true}],"d":0.5})");
}

TEST_CASE("a plan is printed under the recordings' names, extra launches with their scalars") {
  const KernelRecord record = mla_kernel();
  Selection selection;
  selection.num_plans = 2;
  LaunchPlan& plan = selection.plans[0];
  plan.record = &record;
  plan.grid = {20, 1, 4};
  plan.pdl = true;
  plan.reduction = {true, {16, 2, 4}, 512, 8, 2, 1, 512};
  plan.lse = {true, {1, 1, 1}, 512};
  plan.fallback = FallbackReason::kRuleRefuses;
  selection.plans[1] = plan;
  AttentionProblem problem;
  problem.num_q_heads = 128;
  problem.batch = 4;
  std::string out;
  append_answer_json(R"({"id":"a"})", problem, selection, out);
  const json answer = json::parse(out);
  CHECK(answer["in"]["id"] == "a");
  CHECK(answer["ok"] == true);
  CHECK(answer["meta_sm"] == 10100);
  CHECK(answer["fallback"] == "rule_refuses");
  CHECK(answer["reduction_kernel"]["template"] ==
        "fmhaReductionKernel<64, 512, true, __nv_bfloat16, __nv_bfloat16>");
  CHECK(answer["reduction_kernel"]["scalars"] == json::array({1, 0, 0, 8, 2, 512, 1}));
  CHECK(answer["lse_kernel"]["scalars"] ==
        json::array({0x600000800000, 0x750000000000, 128, 128, 1, 512}));
  CHECK(answer["alternatives"].size() == 1);

  plan.param_layout = ParamLayout::kTrtllmGenFmha1152;
  out.clear();
  append_answer_json({}, problem, selection, out);
  const json older = json::parse(out);
  CHECK_FALSE(older.contains("in"));
  CHECK_FALSE(older.contains("reshape_factor_kv"));
  CHECK(older["reduction_kernel"]["scalars"] == json::array({1, 8, 2, 1}));
  CHECK(older["lse_kernel"]["scalars"].size() == 3);
}

TEST_CASE("a refusal says what kind it is") {
  std::string out;
  append_error_json(R"({"batch":0})", Error(StatusCode::kInvalidArgument, "batch is \"0\""), 2,
                    out);
  const json answer = json::parse(out);
  CHECK(answer["ok"] == false);
  CHECK(answer["error"] ==
        json{{"code", "invalid_argument"}, {"exit_code", 2}, {"message", "batch is \"0\""}});
  CHECK(answer["in"]["batch"] == 0);
}

TEST_CASE("an explanation is one JSON document") {
  const KernelRecord record = mla_kernel();
  selector::Explanation explanation;
  explanation.request.push_back({"phase", "decode \"x\""});
  selector::PackExplanation pack;
  pack.pack = "p";
  pack.passes.emplace_back();
  pack.passes[0].record = &record;
  pack.passes[0].candidates.push_back({&record, {}, 1, 2.5F, true});
  pack.tiles.push_back({&record, {}, 0, 3.5F});
  pack.nearest.push_back(
      {&record, {{selector::Misfit::kPage, "page_size", "64", "32", "page_size 32"}}, 2});
  explanation.packs.push_back(pack);
  explanation.runner_up = selector::RankedKernel{&record, {}, 0, 7.0F};
  explanation.barred.push_back({&record, "revoked"});
  std::string out;
  append_explanation_json(explanation, out);
  const json document = json::parse(out);
  CHECK(document["request"][0]["text"] == "decode \"x\"");
  CHECK(document["packs"][0]["passes"][0]["candidates"][0]["modelled_time"] == 2.5);
  CHECK(document["packs"][0]["nearest"][0]["differences"][0]["change"] == "page_size 32");
  CHECK(document["runner_up"]["modelled_time"] == 7.0);
  CHECK(document["barred"][0]["reason"] == "revoked");
}

}  // namespace cubist
