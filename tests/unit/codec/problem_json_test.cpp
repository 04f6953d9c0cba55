#include "codec/problem_json.h"

#include <string>

#include "codec/device_presets.h"
#include "support/catch.h"

namespace cubist {
namespace {

DeviceProfile b200() { return *find_device_preset("b200"); }

std::string error_of(std::string_view text) {
  ProblemLine line;
  const Status status = read_problem(text, b200(), line);
  return status ? std::string() : status.error().message();
}

}  // namespace

TEST_CASE("a problem's fields land where they belong, and the rest keeps its default") {
  ProblemLine line;
  REQUIRE(
      read_problem(
          R"({"id":"x","phase":"context","sm":103,"num_sms":152,"dtype_q":"e4m3","dtype_kv":"e2m1",
                  "dtype_o":"fp16","num_q_heads":96,"num_kv_heads":12,"head_dim_qk":192,
                  "head_dim_vo":128,"batch":3,"max_q_len":7,"max_kv_len":4096,"page_size":16,
                  "kv_layout":"NHD","causal":false,"bmm1_scale":"ptr","bmm2_scale":0.5,
                  "skip_softmax":5.0,"sage_blocks":[1,4,0,1],"workspace_size":134217728,
                  "sum_seq_q":12,"max_active_clusters":7,"lse":true,"family":"y"})",
          b200(), line)
          .has_value());
  const AttentionProblem& p = line.value.problem;
  CHECK(p.phase == Phase::kContext);
  CHECK(line.value.device.sm == 103);
  CHECK(line.value.device.num_sms == 152);
  CHECK(line.value.device.max_active_clusters[4] == 36);
  CHECK(p.dtype_k == Dtype::kE2m1);
  CHECK(p.dtype_v == Dtype::kE2m1);
  CHECK(p.dtype_o == Dtype::kFp16);
  CHECK(p.head_dim_vo == 128);
  CHECK(p.kv_layout == KvLayout::kNhd);
  CHECK_FALSE(p.causal);
  CHECK(p.bmm1_scale.on_device);
  CHECK(p.bmm2_scale.value == 0.5);
  CHECK(p.skip_softmax == 5.0F);
  CHECK(p.sage_blocks == std::array<std::int32_t, 4>{1, 4, 0, 1});
  CHECK(p.workspace_size == 134217728);
  CHECK(p.sum_seq_q == 12);
  CHECK(p.max_active_clusters == 7);
  CHECK(p.lse);
  CHECK(p.enable_pdl);
  CHECK(p.window_left == -1);
}

TEST_CASE("a bare problem and one inside \"in\" read the same, results beside it are passed over") {
  const std::string bare = R"({"num_q_heads":64,"batch":8})";
  ProblemLine a;
  ProblemLine b;
  REQUIRE(read_problem(bare, b200(), a).has_value());
  const std::string recorded = R"({"ok":true,"tensor_maps":[{"slot":"q","dims":[1,2]}],"in": )" +
                               bare + R"( ,"kernel":"k"})";  // in_text borrows from it
  REQUIRE(read_problem(recorded, b200(), b).has_value());
  CHECK(a.value.problem == b.value.problem);
  CHECK(a.in_text == bare);
  CHECK(b.in_text == bare);
}

TEST_CASE("types of K and V that are named win over dtype_kv wherever they stand") {
  for (const char* text :
       {R"({"dtype_k":"int8","dtype_kv":"e4m3"})", R"({"dtype_kv":"e4m3","dtype_k":"int8"})"}) {
    ProblemLine line;
    REQUIRE(read_problem(text, b200(), line).has_value());
    CHECK(line.value.problem.dtype_k == Dtype::kInt8);
    CHECK(line.value.problem.dtype_v == Dtype::kE4m3);
  }
}

TEST_CASE("gpcs give the cluster answers, another number of SMs the model's") {
  ProblemLine line;
  REQUIRE(read_problem(R"({"gpcs":[16,18]})", b200(), line).has_value());
  CHECK(line.value.device.max_active_clusters[2] == 17);
  CHECK(line.value.device.max_active_clusters[9] == 3);
  REQUIRE(read_problem(R"({"num_sms":64})", b200(), line).has_value());
  CHECK(line.value.device.max_active_clusters[6] == 8);
  REQUIRE(read_problem("{}", b200(), line).has_value());
  CHECK(line.value.device.max_active_clusters[2] == 74);
}

TEST_CASE("what is no problem is refused with the field's name") {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "expected an object"},
      {"[]", "expected an object"},
      {"{} x", "text after the object"},
      {R"({"batch":1,"batch":2})", "batch: offset"},
      {R"({"bacth":1})", "bacth: offset 9: unknown field"},
      {R"({"batch":"8"})", "batch: offset 9: expected a number"},
      {R"({"batch":1.5})", "without fraction"},
      {R"({"batch":3000000000})", "does not fit the field"},
      {R"({"sm":-1})", "sm: offset"},
      {R"({"num_pages":99999999999999999999})", "64 bits"},
      {R"({"phase":"decoding"})", "phase: offset 19: expected one of decode context ragged"},
      {R"({"dtype_q":"fp8"})", "dtype_q: offset"},
      {R"({"kv_layout":"hnd"})", "expected HND or NHD"},
      {R"({"lse":1})", "expected true or false"},
      {R"({"bmm1_scale":"device"})", "expected a number or \"ptr\""},
      {R"({"skip_softmax":null})", "skip_softmax: offset"},
      {R"({"sage_blocks":[1,2]})", "four block sizes"},
      {R"({"sage_blocks":[1,2,3,4,5]})", "four block sizes"},
      {R"({"sage_blocks":[1,2,3,256]})", "four block sizes"},
      {R"({"gpcs":[-1]})", "gpcs: offset"},
      {R"({"in":{"batch":1},"in":{}})", "twice"},
      {R"({"in":{"in":{}}})", "in: offset 12: unknown field"},
      {R"({"in":5})", "expected an object"},
      {R"({"batch":1)", "expected ',' or '}'"},
  };
  for (const auto& [text, reason] : bad) {
    INFO(text);
    const std::string message = error_of(text);
    INFO(message);
    CHECK(message.find(reason) != std::string::npos);
  }
}

TEST_CASE("a default problem written out reads back as itself") {
  AttentionProblem problem;
  problem.num_q_heads = 8;
  problem.head_dim_vo = 128;
  problem.dtype_v = Dtype::kE4m3;
  problem.skip_softmax = 1.5F;
  problem.bmm2_scale.on_device = true;
  problem.sage_blocks = {1, 16, 0, 1};
  problem.window_left = 127;
  std::string text;
  append_problem_json(problem, b200(), text);
  ProblemLine line;
  REQUIRE(read_problem(text, DeviceProfile{}, line).has_value());
  CHECK(line.value.problem == problem);
  CHECK(line.value.device.sm == 100);
}

}  // namespace cubist
