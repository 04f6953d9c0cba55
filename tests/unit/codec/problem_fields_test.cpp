#include "codec/problem_fields.h"

#include <algorithm>

#include "codec/device_presets.h"
#include "support/catch.h"

namespace cubist {
namespace {

Status set(std::string_view name, std::string_view text, ProblemAndDevice& out) {
  const ProblemField* field = find_problem_field(name);
  REQUIRE(field != nullptr);
  return set_field(*field, text, out);
}

}  // namespace

TEST_CASE("every field is found by its name and no other") {
  for (const ProblemField& field : problem_fields()) {
    CHECK(find_problem_field(field.name) == &field);
    CHECK_FALSE(field.help.empty());
  }
  CHECK(find_problem_field("") == nullptr);
  CHECK(find_problem_field("batc") == nullptr);
  CHECK(find_problem_field("zzz") == nullptr);
}

TEST_CASE("text sets fields of every kind") {
  ProblemAndDevice out;
  CHECK(set("max_kv_len", "128k", out).has_value());
  CHECK(out.problem.max_kv_len == 131072);
  CHECK(set("workspace_size", "8388608", out).has_value());
  CHECK(set("lse", "true", out).has_value());
  CHECK(out.problem.lse);
  CHECK(set("dtype_kv", "e4m3", out).has_value());
  CHECK(out.problem.dtype_v == Dtype::kE4m3);
  CHECK(set("bmm1_scale", "ptr", out).has_value());
  CHECK(out.problem.bmm1_scale.on_device);
  CHECK(set("bmm1_scale", "0.25", out).has_value());
  CHECK(out.problem.bmm1_scale.value == 0.25);
  CHECK(set("skip_softmax", "5", out).has_value());
  CHECK(set("sage_blocks", "1,16,0,1", out).has_value());
  CHECK(out.problem.sage_blocks[1] == 16);
  CHECK(set("gpcs", "18,18", out).has_value());
  CHECK_FALSE(set("gpcs", "18,0", out).has_value());
  CHECK_FALSE(set("gpcs", "257", out).has_value());
  CHECK(out.device.max_active_clusters[9] == 4);
  CHECK(set("sm", "103", out).has_value());
  CHECK(out.device.sm == 103);
  CHECK(set("o_sf_scale", "0.5", out).has_value());
  CHECK(set("phase", "ragged", out).has_value());
  CHECK(set("kv_layout", "NHD", out).has_value());
}

TEST_CASE("text that does not fit is refused with field, text and what is accepted") {
  const std::vector<std::array<std::string, 3>> bad = {
      {"batch", "eight", "whole number"},   {"batch", "", "whole number"},
      {"batch", "1.5", "whole number"},     {"batch", "3000000000", "fits the field"},
      {"batch", "3000000k", "fits"},        {"sm", "-1", "fits"},
      {"lse", "yes", "true or false"},      {"dtype_q", "fp8", "one of fp16"},
      {"phase", "prefill", "decode"},       {"kv_layout", "hnd", "HND or NHD"},
      {"bmm1_scale", "x", "number or ptr"}, {"sage_blocks", "1,2,3", "four integers"},
      {"sage_blocks", "1,,2,3", "four"},    {"gpcs", "a", "integers"},
      {"o_sf_scale", "1x", "a number"},     {"skip_softmax", "", "a number"},
  };
  for (const auto& [name, text, accepted] : bad) {
    ProblemAndDevice out;
    const Status status = set(name, text, out);
    INFO(name << " '" << text << "'");
    REQUIRE_FALSE(status.has_value());
    CHECK(status.error().message().find(name + " is '" + text + "'") == 0);
    CHECK(status.error().message().find(accepted) != std::string::npos);
  }
}

TEST_CASE("device presets have what selection needs") {
  for (const DevicePreset& preset : device_presets()) {
    const auto device = find_device_preset(preset.name);
    REQUIRE(device.has_value());
    CHECK(device->sm >= 80);
    CHECK(device->num_sms > 0);
    CHECK(device->max_smem_optin > 100000);
    CHECK(device->max_active_clusters[2] > 0);
  }
  CHECK_FALSE(find_device_preset("b2000").has_value());
}

}  // namespace cubist
