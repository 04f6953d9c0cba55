#include "workingset/classes.h"

#include "support/catch.h"
#include "support/published.h"

using namespace cubist;
using namespace cubist::workingset;

namespace {

presets::ModelPreset model(const std::string& name) {
  return test::shipped_presets().find_model(name).value();
}

}  // namespace

TEST_CASE("a model's layers, phases, types and pages multiply") {
  ClassOptions options;
  options.page_size = {32, 64};
  options.dtype_q = {Dtype::kBf16, Dtype::kE4m3};
  const auto classes = make_classes(model("gpt-oss-120b"), options);
  REQUIRE(classes);
  CHECK(classes->size() == 2 * 2 * 2);
  for (const ProblemClass& cls : *classes) {
    CHECK(cls.problem.num_q_heads == 64);
    CHECK(cls.problem.dtype_k == cls.problem.dtype_q);
    CHECK(cls.problem.dtype_o == Dtype::kBf16);
    CHECK(cls.problem.sinks);
  }
  options.phases = {Phase::kDecode, Phase::kContext};
  options.tensor_parallel = {1, 8};
  CHECK(make_classes(model("gpt-oss-120b"), options)->size() == 32);
}

TEST_CASE("phases that layers do not have make no class, and none at all is an error") {
  ClassOptions options;
  options.phases = {Phase::kRagged};
  const auto prefill = make_classes(model("deepseek-v3"), options);
  REQUIRE(prefill);
  REQUIRE(prefill->size() == 1);
  CHECK(prefill->at(0).problem.head_dim_qk == 192);
  options.phases = {Phase::kContext};
  const auto none = make_classes(model("deepseek-v3"), options);
  REQUIRE_FALSE(none);
  CHECK(none.error().message().find("no layers for the phases") != std::string::npos);
}

TEST_CASE("equal problems make one class, empty lists and odd parallel sizes are refused") {
  ClassOptions options;
  options.tensor_parallel = {1, 1};
  CHECK(make_classes(model("qwen3-8b"), options)->size() == 1);
  options.tensor_parallel = {3};
  CHECK_FALSE(make_classes(model("qwen3-8b"), options));
  options.tensor_parallel = {};
  CHECK_FALSE(make_classes(model("qwen3-8b"), options));
  options = {};
  options.page_size = {};
  CHECK_FALSE(make_classes(model("qwen3-8b"), options));
  options = {};
  options.dtype_q = {};
  CHECK_FALSE(make_classes(options));
  options = {};
  options.rest.num_q_heads = 32;
  CHECK(make_classes(options)->size() == 1);
}
