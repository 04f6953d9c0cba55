#include "overrides/rule_file.h"

#include <string>

#include "support/catch.h"

using namespace cubist;
using namespace cubist::overrides;

namespace {

std::string file_with(const std::string& members) {
  return R"({"schema":"cubist.overrides","schema_version":1,)" + members + "}";
}

std::string rule_with(const std::string& members) {
  return file_with(R"("rules":[{"name":"r",)" + members + "}]");
}

std::string error_of(const std::string& text) {
  const auto file = parse_rules(text, "rules.json");
  return file ? "" : file.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool applies(const std::string& when, const ProblemAndDevice& value) {
  auto file = parse_rules(rule_with(R"("forbid":{"tile_q":64},"when":)" + when), "rules.json");
  if (!file) FAIL(file.error().message());
  return file->rules[0].applies(value);
}

}  // namespace

TEST_CASE("conditions hold for words, numbers, ranges and lists of them") {
  ProblemAndDevice value;
  value.problem.dtype_q = Dtype::kE4m3;
  value.problem.dtype_k = value.problem.dtype_v = Dtype::kE4m3;
  value.problem.batch = 8;
  value.problem.sinks = true;
  value.device.sm = 100;
  CHECK(applies("{}", value));
  CHECK(applies(R"({"phase":"decode","dtype_q":"e4m3","dtype_kv":"e4m3","sinks":true})", value));
  CHECK(applies(R"({"batch":8})", value));
  CHECK(applies(R"({"batch":[1,8]})", value));
  CHECK(applies(R"({"batch":{"min":2,"max":8}})", value));
  CHECK(applies(R"({"batch":[1,{"min":5}],"sm":[100,103]})", value));
  CHECK(applies(R"({"dtype_q":["bf16","e4m3"]})", value));
  CHECK_FALSE(applies(R"({"batch":{"max":7}})", value));
  CHECK_FALSE(applies(R"({"batch":{"min":9}})", value));
  CHECK_FALSE(applies(R"({"phase":"context"})", value));
  CHECK_FALSE(applies(R"({"sinks":false})", value));
  CHECK_FALSE(applies(R"({"dtype_q":"bf16"})", value));
  value.problem.dtype_v = Dtype::kBf16;
  CHECK_FALSE(applies(R"({"dtype_kv":"e4m3"})", value));
  CHECK(applies(R"({"dtype_v":"bf16"})", value));
}

TEST_CASE("rule files that say nothing or something else are refused with their place") {
  CHECK(contains(error_of("x"), "not a JSON text"));
  CHECK(contains(error_of(R"({"schema":"cubist.models"})"), "says cubist.overrides"));
  CHECK(contains(error_of(file_with(R"("rules":[])")), "neither bar nor rules"));
  CHECK(contains(error_of(file_with(R"("rule":[])")), "unknown key 'rule'"));
  CHECK(contains(error_of(rule_with(R"("when":{})")), "the rule does nothing"));
  CHECK(contains(error_of(rule_with(R"("forbid":{})")), "names no kernels"));
  CHECK(contains(error_of(rule_with(R"("forbid":{"tile":64})")), "unknown key 'tile'"));
  CHECK(contains(error_of(rule_with(R"("forbid":{"tile_q":"64"})")), "/rules/0/forbid/tile_q"));
  CHECK(contains(error_of(rule_with(R"("forbid":{"tile_q":-64})")), "is -64"));
  CHECK(contains(error_of(rule_with(R"("forbid":{"tile_q":[]})")), "is empty"));
  CHECK(contains(error_of(rule_with(R"("force":{"multi_ctas_kv_mode":"fast"})")),
                 "expected off, gmem, gmem_separate or cga_smem"));
  CHECK(contains(error_of(rule_with(R"("force":{"two_cta_mma":"true"})")), "true or false"));
  CHECK(contains(error_of(rule_with(R"("force":{"sha256":"abc"})")), "64 hexadecimal digits"));
}

TEST_CASE("conditions that name unknown fields, values or empty ranges are refused") {
  const auto when = [](const std::string& text) {
    return error_of(rule_with(R"("forbid":{"tile_q":64},"when":)" + text));
  };
  CHECK(when(R"({"batch":1})").empty());
  CHECK(contains(when(R"({"batch_size":1})"), "unknown key 'batch_size'"));
  CHECK(contains(when(R"({"sum_seq_q":1})"), "unknown key 'sum_seq_q'"));
  CHECK(contains(when(R"({"batch":{"min":8,"max":2}})"), "nothing is in between"));
  CHECK(contains(when(R"({"batch":{"least":8}})"), "unknown key 'least'"));
  CHECK(contains(when(R"({"batch":{}})"), "is empty"));
  CHECK(contains(when(R"({"batch":"8"})"), "/rules/0/when/batch"));
  CHECK(contains(when(R"({"dtype_q":"fp8"})"), "dtype_q is 'fp8'"));
  CHECK(contains(when(R"({"phase":[]})"), "is empty"));
  CHECK(contains(when("7"), "/rules/0/when"));
}

TEST_CASE("null is refused wherever a rule file has it, with line and field, and is no default") {
  const auto refused = [](const std::string& text, const std::string& place) {
    const std::string error = error_of(text);
    INFO(text << " -> " << error);
    CHECK(contains(error, place + ": found null"));
  };
  refused(file_with(R"("bar":null)"), "/bar");
  refused(file_with(R"("rules":null)"), "/rules");
  refused(file_with(R"("bar":[null])"), "/bar/0");
  refused(rule_with(R"("forbid":{"tile_q":64},"force":null)"), "/rules/0/force");
  refused(rule_with(R"("forbid":{"tile_q":null})"), "/rules/0/forbid/tile_q");
  refused(rule_with(R"("forbid":{"tile_q":[64,null]})"), "/rules/0/forbid/tile_q/1");
  refused(rule_with(R"("forbid":{"tile_q":64},"when":null)"), "/rules/0/when");
  refused(rule_with(R"("forbid":{"tile_q":64},"when":{"batch":null})"), "/rules/0/when/batch");
  refused(rule_with(R"("forbid":{"tile_q":64},"when":{"batch":{"min":null,"max":1}})"),
          "/rules/0/when/batch/min");
  refused(rule_with("\n\"forbid\":{\"tile_q\":64},\n\"reason\":null"),
          "rules.json:3: /rules/0/reason");
}

TEST_CASE("names and reasons are needed where explain shows them") {
  CHECK(contains(error_of(file_with(R"("rules":[{"forbid":{"tile_q":64}}])")),
                 "/rules/0/name: the key is missing"));
  CHECK(contains(error_of(file_with(R"("rules":[{"name":"a","forbid":{"tile_q":64}},
                                       {"name":"a","forbid":{"tile_q":32}}])")),
                 "another rule has this name"));
  CHECK(contains(error_of(file_with(R"("bar":[{"sha256":")" + std::string(64, 'a') + "\"}]")),
                 "/bar/0/reason: the key is missing"));
  CHECK(contains(error_of(file_with(R"("bar":[{"sha256":"zz","reason":"x"}])")), "is no sha256"));
}
