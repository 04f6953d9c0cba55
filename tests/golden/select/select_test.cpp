#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "codec/plan_json.h"
#include "codec/problem_json.h"
#include "recordings.h"
#include "selector/select.h"
#include "support/catch.h"

namespace cubist {
namespace {

using nlohmann::json;

/// What selection decides, by the recordings' names; reshape_factor_kv is not in those of 0.6.8.
constexpr std::array kDecided = {"kernel",
                                 "sha256",
                                 "grid",
                                 "block",
                                 "cluster",
                                 "smem",
                                 "pdl",
                                 "cluster_sched_policy",
                                 "kernel_type",
                                 "mask_type",
                                 "scheduler",
                                 "multi_ctas_kv_mode",
                                 "num_ctas_q",
                                 "num_ctas_kv",
                                 "tile_q",
                                 "step_q",
                                 "tile_kv",
                                 "step_kv",
                                 "num_tokens_per_cta_q",
                                 "num_heads_per_cta",
                                 "head_dim_per_cta_v",
                                 "meta_page_size",
                                 "meta_sm",
                                 "groups_heads_q",
                                 "groups_tokens_heads_q",
                                 "two_cta_mma",
                                 "skip_softmax",
                                 "reshape_factor_kv",
                                 "reduction_kernel",
                                 "lse_kernel"};

DeviceProfile default_device() {
  DeviceProfile device;
  device.sm = 100;
  device.num_sms = 148;
  return device;
}

struct Answer {
  bool ok = false;
  json document;
  FallbackReason fallback = FallbackReason::kNone;
};

Answer answer(const selector::KernelTable& table, const std::string& line, bool strict) {
  ProblemLine problem;
  const Status read = read_problem(line, default_device(), problem);
  if (!read) FAIL(read.error().message());
  selector::SelectOptions options;
  options.strict = strict;
  const auto selection =
      selector::select(table, problem.value.problem, problem.value.device, options);
  std::string text;
  Answer result;
  result.ok = selection.has_value();
  if (selection) {
    append_answer_json(problem.in_text, problem.value.problem, *selection, text);
    result.fallback = selection->best().fallback;
  } else {
    append_error_json(problem.in_text, selection.error(), 1, text);
  }
  result.document = json::parse(text);
  return result;
}

/// Recorded launches whose CTAs hold heads of two KV groups: hpk above step_q and no multiple of
/// it.
bool splits_head_groups(const json& recording) {
  if (!recording["ok"].get<bool>() || recording["in"]["phase"] != "decode") return false;
  const int hpk =
      recording["in"]["num_q_heads"].get<int>() / recording["in"]["num_kv_heads"].get<int>();
  const int step_q = recording["step_q"].get<int>();
  return hpk > step_q && hpk % step_q != 0;
}

std::string first_difference(const json& recording, const json& ours) {
  for (const char* field : kDecided) {
    if (!recording.contains(field)) continue;
    if (!ours.contains(field)) return std::string(field) + " is missing";
    if (recording[field] != ours[field]) {
      return std::string(field) + ": recorded " + recording[field].dump() + ", ours " +
             ours[field].dump();
    }
  }
  return {};
}

struct Counts {
  int launched = 0;
  int refused = 0;
  int mixed_groups = 0;
  int fallbacks = 0;
};

Counts hold_against(const std::string& release) {
  const test::OpenedManifest opened = test::open_shipped("flashinfer-" + release);
  Counts counts;
  for (const std::string& line : test::read_recordings("selection-" + release + ".jsonl.gz")) {
    const json recording = json::parse(line);
    INFO(recording["in"].dump());
    const Answer strict = answer(opened.table, line, true);
    const Answer loose = answer(opened.table, line, false);
    if (splits_head_groups(recording)) {
      ++counts.mixed_groups;
      REQUIRE_FALSE(strict.ok);
      REQUIRE(strict.document["error"]["message"].get<std::string>().find("two KV groups") !=
              std::string::npos);
      REQUIRE((!loose.ok || loose.fallback == FallbackReason::kRuleSplitsHeadGroups));
      continue;
    }
    REQUIRE(strict.ok == recording["ok"].get<bool>());
    if (strict.ok) {
      ++counts.launched;
      REQUIRE(first_difference(recording, strict.document) == "");
      REQUIRE(first_difference(recording, loose.document) == "");
      REQUIRE(loose.fallback == FallbackReason::kNone);
    } else {
      ++counts.refused;
      if (loose.ok) {
        REQUIRE(loose.fallback != FallbackReason::kNone);
        ++counts.fallbacks;
      }
    }
  }
  std::cout << release << ": " << counts.launched << " launches equal, " << counts.refused
            << " refusals equal (" << counts.fallbacks << " served by a fallback without strict), "
            << counts.mixed_groups << " with mixed head groups refused\n";
  return counts;
}

}  // namespace

TEST_CASE("every recording of 0.6.13 gets the recorded launch or the recorded refusal") {
  const Counts counts = hold_against("0.6.13");
  CHECK(counts.launched + counts.refused + counts.mixed_groups == 3000);
  CHECK(counts.launched + counts.mixed_groups == 2093);
  CHECK(counts.fallbacks == 75);
}

TEST_CASE("every recording of 0.6.8 gets the recorded launch or the recorded refusal") {
  const Counts counts = hold_against("0.6.8");
  CHECK(counts.launched + counts.refused + counts.mixed_groups == 2000);
  CHECK(counts.launched + counts.mixed_groups == 1242);
  CHECK(counts.mixed_groups == 1);
  CHECK(counts.fallbacks == 19);
}

TEST_CASE("fallbacks take the kernel that their order names") {
  struct Example {
    const char* id;
    const char* kernel;
    FallbackReason reason;
  };
  // Worked out by hand from the order (docs/design/selection.md): the pair of CTAs that no 320/256
  // kernel has, 512 columns that no Keeps kernel keeps, a sparse tile of 1, a page of 512 for one
  // head per KV head, 20 heads that no tile divides, windowed MLA.
  const std::vector<Example> examples = {
      {"a01200",
       "fmhaSm100fKernel_QkvBfloat16OBfloat16HQk320HV256PagedKvDenseP64MultiCtasKvCgaVarSeqQ64Kv128"
       "StaticKeepsAbForGen",
       FallbackReason::kRuleFindsNoKernel},
      {"a00969",
       "fmhaSm100fKernel_QkvE4m3OBfloat16H512HVPerCta256PagedKvCausalP32VarSeqQ128Kv128"
       "PersistentKeepsAbForGen",
       FallbackReason::kRuleFindsNoKernel},
      {"a01613",
       "fmhaSm100fKernel_"
       "QkvBfloat16OBfloat16HQk576HV512PagedKvDenseStaticTokenSparseP1VarSeqQ8Kv128"
       "PersistentSwapsAbForGen",
       FallbackReason::kRuleFindsNoKernel},
      {"a01026",
       "fmhaSm100fKernel_QkvE4m3OE4m3H256PagedKvCausalPagedVarSeqQ64Kv128PersistentKeepsAbForGen",
       FallbackReason::kRuleFindsNoKernel},
  };
  const test::OpenedManifest opened = test::open_shipped("flashinfer-0.6.13");
  const std::vector<std::string> lines = test::read_recordings("selection-0.6.13.jsonl.gz");
  const auto find = [&](const std::string& id) {
    const auto at = std::find_if(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find("\"id\":\"" + id + "\"") != std::string::npos;
    });
    REQUIRE(at != lines.end());
    return *at;
  };
  for (const Example& example : examples) {
    INFO(example.id);
    const Answer ours = answer(opened.table, find(example.id), false);
    REQUIRE(ours.ok);
    CHECK(ours.document["kernel"] == example.kernel);
    CHECK(ours.fallback == example.reason);
  }
  CHECK(answer(opened.table, find("a01200"), false).document["grid"] == json({40, 2, 2}));
  CHECK(answer(opened.table, find("a00969"), false).document["grid"] == json({5, 2, 32}));
  // 20 heads: a tile of 32 with padding. A window of 1,024 over 320/256: three CTAs in a cluster.
  const json padded = answer(opened.table, find("a01681"), false).document;
  CHECK(padded["tile_q"] == 32);
  CHECK(padded["fallback"] == "rule_refuses");
  const json windowed = answer(opened.table, find("a02401"), false).document;
  CHECK(windowed["mask_type"] == 2);
  CHECK(windowed["multi_ctas_kv_mode"] == 3);
  CHECK(windowed["num_ctas_kv"] == 3);
}

TEST_CASE("the seed grid launches its 640 cases and refuses the other 320") {
  for (const std::string release : {"0.6.13", "0.6.8"}) {
    const test::OpenedManifest opened = test::open_shipped("flashinfer-" + release);
    int launched = 0;
    int refused = 0;
    for (const std::string& line : test::read_recordings("selection-" + release + ".jsonl.gz")) {
      if (line.find("\"family\":\"grid\"") == std::string::npos) continue;
      const json recording = json::parse(line);
      INFO(recording["in"].dump());
      const Answer ours = answer(opened.table, line, true);
      REQUIRE(ours.ok == recording["ok"].get<bool>());
      if (ours.ok) REQUIRE(first_difference(recording, ours.document) == "");
      ++(ours.ok ? launched : refused);
    }
    CHECK(launched == 640);
    CHECK(refused == 320);
  }
}

TEST_CASE("a problem written back as JSON is the problem that was read") {
  int count = 0;
  for (const std::string release : {"0.6.13", "0.6.8"}) {
    for (const std::string& line : test::read_recordings("selection-" + release + ".jsonl.gz")) {
      ProblemLine first;
      REQUIRE(read_problem(line, default_device(), first).has_value());
      std::string text;
      append_problem_json(first.value.problem, first.value.device, text);
      ProblemLine second;
      INFO(text);
      REQUIRE(read_problem(text, default_device(), second).has_value());
      AttentionProblem expected = first.value.problem;
      if (expected.head_dim_vo == -1) expected.head_dim_vo = expected.head_dim_qk;
      REQUIRE(second.value.problem == expected);
      REQUIRE(second.value.device.sm == first.value.device.sm);
      REQUIRE(second.value.device.num_sms == first.value.device.num_sms);
      REQUIRE(second.value.device.max_active_clusters == first.value.device.max_active_clusters);
      ++count;
    }
  }
  CHECK(count == 5000);
}

TEST_CASE("asking the cost model always changes no choice of any recording") {
  int count = 0;
  for (const std::string release : {"0.6.13", "0.6.8"}) {
    const test::OpenedManifest opened = test::open_shipped("flashinfer-" + release);
    selector::SelectOptions sometimes;
    sometimes.strict = true;
    selector::SelectOptions always = sometimes;
    always.rules.cost_model_always = true;
    for (const std::string& line : test::read_recordings("selection-" + release + ".jsonl.gz")) {
      ProblemLine problem;
      REQUIRE(read_problem(line, default_device(), problem).has_value());
      const auto a =
          selector::select(opened.table, problem.value.problem, problem.value.device, sometimes);
      const auto b =
          selector::select(opened.table, problem.value.problem, problem.value.device, always);
      INFO(problem.in_text);
      REQUIRE(a.has_value() == b.has_value());
      if (a) REQUIRE(a->best().record == b->best().record);
      if (a) REQUIRE(a->best().grid == b->best().grid);
      ++count;
    }
  }
  CHECK(count == 5000);
}

}  // namespace cubist
