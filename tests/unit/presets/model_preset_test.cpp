#include "presets/model_preset.h"

#include <string>

#include "presets/device_preset.h"
#include "support/catch.h"

using namespace cubist;
using namespace cubist::presets;

namespace {

std::string models_error(const std::string& attention) {
  const std::string text =
      R"({"schema":"cubist.models","schema_version":1,"models":[{"name":"m",)" + attention + "}]}";
  const auto models = parse_model_presets(text, "mine.json");
  return models ? "" : models.error().message();
}

std::string devices_error(const std::string& device) {
  const auto devices = parse_device_presets(
      R"({"schema":"cubist.devices","schema_version":1,"devices":[)" + device + "]}", "mine.json");
  return devices ? "" : devices.error().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

AttentionPreset gqa(std::int32_t q, std::int32_t kv) {
  AttentionPreset a;
  a.name = "full";
  a.layers = 1;
  a.num_q_heads = q;
  a.num_kv_heads = kv;
  a.head_dim_qk = a.head_dim_vo = 128;
  return a;
}

}  // namespace

TEST_CASE("a preset that breaks a rule is refused with file, place and rule") {
  const std::string good =
      R"("attention":[{"name":"full","layers":2,"num_q_heads":8,"num_kv_heads":2,"head_dim_qk":64}])";
  CHECK(models_error(good).empty());
  CHECK(contains(models_error(R"("attention":[])"), "attention is empty"));
  CHECK(contains(models_error(R"("max_kv_len":5)"), "/models/0/attention: the key is missing"));
  CHECK(contains(models_error(good + R"(,"colour":1)"), "unknown key 'colour'"));
  CHECK(contains(
      models_error(
          R"("attention":[{"name":"f","layers":2,"num_q_heads":9,"num_kv_heads":2,"head_dim_qk":64}])"),
      "num_q_heads is 9; it must be a multiple of num_kv_heads, 2"));
  CHECK(contains(
      models_error(
          R"("attention":[{"name":"f","layers":2,"num_q_heads":8,"num_kv_heads":2,"head_dim_qk":64,
             "phases":["prefill"]}])"),
      "unknown phase 'prefill'"));
  CHECK(contains(
      models_error(
          R"("attention":[{"name":"f","layers":2,"num_q_heads":8,"num_kv_heads":2,"head_dim_qk":64,
             "is_mla":true}])"),
      "absorbed MLA has one"));
  CHECK(contains(models_error(good + R"(,"dtypes_kv":["fp8"])"), "unknown element type 'fp8'"));
  CHECK(contains(
      parse_model_presets(R"({"schema":"cubist.devices","schema_version":1,"models":[]})", "x")
          .error()
          .message(),
      "a file of models says cubist.models"));
  CHECK(contains(
      parse_model_presets(R"({"schema":"cubist.models","schema_version":2,"models":[]})", "x")
          .error()
          .message(),
      "/schema_version: is 2"));
}

TEST_CASE("a device preset that breaks a rule is refused") {
  const std::string good = R"({"name":"d","sm":100,"num_sms":148,"max_smem_optin":232448)";
  CHECK(devices_error(good + "}").empty());
  CHECK(contains(devices_error(R"({"name":"d","sm":100,"max_smem_optin":232448})"),
                 "/devices/0/num_sms: the key is missing"));
  CHECK(contains(devices_error(good + R"(,"max_active_clusters":{"17":1}})"), "no cluster size"));
  CHECK(contains(devices_error(good + R"(,"max_active_clusters":{"x":1}})"), "no cluster size"));
  CHECK(contains(devices_error(good + R"(,"num_gpus":8})"), "unknown key 'num_gpus'"));
  const auto device =
      parse_device_presets(R"({"schema":"cubist.devices","schema_version":1,"devices":[)" + good +
                               R"(,"max_active_clusters":{"8":15,"16":0}}]})",
                           "x");
  REQUIRE(device);
  CHECK(device->at(0).profile.max_active_clusters[8] == 15);
  CHECK(device->at(0).profile.max_active_clusters[16] == 0);
  CHECK(device->at(0).profile.max_active_clusters[4] == -1);
}

TEST_CASE("tensor parallelism divides query heads, and KV heads down to one a device") {
  AttentionProblem problem;
  REQUIRE(apply_attention(gqa(64, 8), 4, problem));
  CHECK(problem.num_q_heads == 16);
  CHECK(problem.num_kv_heads == 2);
  REQUIRE(apply_attention(gqa(64, 8), 16, problem));
  CHECK(problem.num_q_heads == 4);
  CHECK(problem.num_kv_heads == 1);
  CHECK_FALSE(apply_attention(gqa(64, 8), 3, problem));
  CHECK_FALSE(apply_attention(gqa(40, 10), 4, problem));
  CHECK_FALSE(apply_attention(gqa(64, 8), 0, problem));
  AttentionPreset mla = gqa(128, 1);
  mla.is_mla = true;
  mla.sparse_mla_topk = 2048;
  REQUIRE(apply_attention(mla, 8, problem));
  CHECK(problem.num_q_heads == 16);
  CHECK(problem.num_kv_heads == 1);
  CHECK(problem.sparse_mla_topk == 2048);
  problem.phase = Phase::kContext;
  REQUIRE(apply_attention(mla, 8, problem));
  CHECK(problem.sparse_mla_topk == 0);
}
