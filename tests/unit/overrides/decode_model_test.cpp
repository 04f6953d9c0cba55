#include "overrides/decode_model.h"

#include <string>
#include <vector>

#include "manifest/parse.h"
#include "overrides/overrides.h"
#include "selector/decode_costs.h"
#include "support/catch.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;
using overrides::Overrides;
using overrides::parse_rules;
using selector::DecodeModel;

std::string shipped_text() {
  return overrides::write_decode_model(selector::shipped_decode_model(), "H200", "a test");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

struct Shipped {
  Manifest manifest = load_manifest(CUBIST_SOURCE_DIR "/manifests/cubist-decode.json").value();
  std::vector<selector::PackView> views() const {
    const Pack& pack = manifest.packs[0];
    return {{pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels}};
  }
};

AttentionProblem problem() {
  AttentionProblem problem;
  problem.num_q_heads = 64;
  problem.num_kv_heads = 8;
  problem.head_dim_qk = 64;
  problem.batch = 2;
  problem.max_kv_len = 8192;
  problem.page_size = 64;
  return problem;
}

DeviceProfile h200() {
  DeviceProfile device;
  device.sm = 90;
  device.num_sms = 132;
  return device;
}

}  // namespace

TEST_CASE("a model is read as it was written") {
  const auto file = parse_rules(shipped_text(), "tuned.json");
  REQUIRE(file);
  REQUIRE(file->decode_model);
  const DecodeModel& shipped = selector::shipped_decode_model();
  CHECK(file->decode_model->source == "the model of tuned.json, tuned on 'H200'");
  CHECK(file->decode_model->num_static_costs == shipped.num_static_costs);
  CHECK(file->decode_model->static_costs == shipped.static_costs);
  CHECK(file->decode_model->wave == shipped.wave);
  CHECK(file->decode_model->element == Approx(shipped.element));
  CHECK(overrides::write_decode_model(*file->decode_model, "H200", "a test") == shipped_text());
}

TEST_CASE("a model of a rule file decides, and explain says whose it is") {
  const Shipped shipped;
  // Joining costs all, and persistent kernels too: sequences are not split.
  DecodeModel model = selector::shipped_decode_model();
  model.join = 10000;
  model.element *= 100;
  const std::string text = overrides::write_decode_model(model, "odd GPU", "a test");
  const auto rules =
      Overrides::bind(parse_rules(text, "odd.json").value(), shipped.views()).value();
  const auto table = selector::KernelTable::build(shipped.views()).value();
  const Selection by_shipped = selector::select(table, problem(), h200()).value();
  const Selection by_rules = rules.select(problem(), h200()).value();
  CHECK(by_shipped.best().num_ctas_kv > 1);
  CHECK(by_rules.best().num_ctas_kv == 1);
  const auto explained = rules.explain(problem(), h200()).value();
  const auto plain = selector::explain(table, problem(), h200(), {}).value();
  const auto model_step = [](const selector::Explanation& explanation) {
    for (const auto& step : explanation.packs.at(0).steps) {
      if (step.topic == "model") return step.text;
    }
    return std::string();
  };
  CHECK(model_step(explained) == "times by the model of odd.json, tuned on 'odd GPU'");
  CHECK(model_step(plain) == "times by the shipped model");
}

TEST_CASE("the shipped model in a file chooses as without the file") {
  const Shipped shipped;
  const auto rules =
      Overrides::bind(parse_rules(shipped_text(), "same.json").value(), shipped.views()).value();
  const auto table = selector::KernelTable::build(shipped.views()).value();
  AttentionProblem one = problem();
  for (const std::int32_t batch : {1, 4, 40, 128}) {
    for (const std::int32_t length : {64, 2048, 32768}) {
      one.batch = batch;
      one.max_kv_len = length;
      const Selection a = selector::select(table, one, h200()).value();
      const Selection b = rules.select(one, h200()).value();
      CHECK(a.best().record == b.best().record);
      CHECK(a.best().num_ctas_kv == b.best().num_ctas_kv);
    }
  }
}

TEST_CASE("each broken model is refused by file, place and reason") {
  struct Liar {
    std::string from;
    std::string to;
    std::string phrase;
  };
  const std::vector<Liar> liars = {
      {"\"schema_version\": 2", "\"schema_version\": 1", "schema_version 1 has no such key"},
      {"\"schema_version\": 2", "\"schema_version\": 3", "/schema_version"},
      {"\"gpu\": \"H200\",", "", "/decode_model/gpu"},
      {"\"wave\": 2.4", "\"wave\": -1", "/decode_model/wave: is -1"},
      {"\"wave\": 2.4", "\"wave\": 1e30", "/decode_model/wave"},
      {"\"wave\": 2.4", "\"wave\": \"2\"", "/decode_model/wave: found a string"},
      {"\"wave\": 2.4,", "", "/decode_model/wave"},
      {"\"wave\": 2.4", "\"waves\": 2.4", "/decode_model: unknown key 'waves'"},
      {"\"bits\": 16", "\"bits\": 12", "/decode_model/static_kernels/0/bits: must be 8 or 16"},
      {"\"tile_q\": 16", "\"tile_q\": 0", "/decode_model/static_kernels/0/tile_q"},
      {"\"tile_q\": 32", "\"tile_q\": 16", "/decode_model/static_kernels/1: out of order"},
      {"\"per_sm\": 3", "\"per_sm\": 0", "/decode_model/static_kernels/0/per_sm"},
      {"\"more\": 0.47", "\"moar\": 0.47", "/decode_model/static_kernels/0: unknown key 'moar'"},
  };
  for (const Liar& liar : liars) {
    const auto file = parse_rules(replaced(shipped_text(), liar.from, liar.to), "tuned.json");
    INFO(liar.to);
    REQUIRE_FALSE(file);
    CHECK(file.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(file.error().message(), Contains("tuned.json") && Contains(liar.phrase));
  }
  DecodeModel none = selector::shipped_decode_model();
  none.num_static_costs = 0;
  CHECK_THAT(parse_rules(overrides::write_decode_model(none, "x", "y"), "f").error().message(),
             Contains("has 0 kernels"));
}

TEST_CASE("a model that no pack asks is refused: a file cannot silently miss") {
  const auto manifest = load_manifest(CUBIST_SOURCE_DIR "/manifests/cubist-aux.json").value();
  const Pack& pack = manifest.packs[0];
  const std::vector<selector::PackView> views = {
      {pack.name, pack.family, pack.revision, pack.param_layout, pack.kernels}};
  const auto bound = Overrides::bind(parse_rules(shipped_text(), "tuned.json").value(), views);
  REQUIRE_FALSE(bound);
  CHECK_THAT(bound.error().message(),
             Contains("tuned.json: decode_model") && Contains("cubist-decode-1"));
}

}  // namespace cubist
