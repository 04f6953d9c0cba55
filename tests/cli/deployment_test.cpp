#include <nlohmann/json.hpp>

#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"
#include "support/tool.h"
#include "support/tool_json.h"
#include "workingset/set_file.h"

// presets, working-set and select --compare from outside.

namespace cubist {
namespace {

using test::json_of;
using test::run_tool;
using test::ToolRun;
using Arguments = std::vector<std::string>;

/// Shipped presets and manifests, wherever the tool was built.
const test::Environment& shipped() {
  static const test::Environment environment(
      test::Environment::Values{{"CUBIST_PRESETS", CUBIST_SOURCE_DIR "/data/presets"},
                                {"CUBIST_MANIFESTS", CUBIST_SOURCE_DIR "/manifests"}});
  return environment;
}

ToolRun run(const Arguments& arguments) {
  shipped();
  return run_tool(arguments);
}

Arguments with(Arguments base, const Arguments& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const Arguments kDeployment = {"working-set", "-m",  "flashinfer-0.6.13", "--model", "gpt-oss-120b",
                               "--device",    "b200"};
const Arguments kLimits = {"--batch",   "1..256", "--max-q-len", "1..8",
                           "--dtype-q", "e4m3",   "--page-size", "32"};

}  // namespace

TEST_CASE("working-set reads 32k as 32768, and its help names commands that exist") {
  const auto set_for = [](const std::string& kv_len) {
    return run(with(with(kDeployment, kLimits), {"--max-kv-len", kv_len, "--json"}));
  };
  const ToolRun run_with_k = set_for("1k..4k");
  CHECK(run_with_k.exit_code == 0);
  CHECK(json_of(run_with_k) == json_of(set_for("1024..4096")));
  const ToolRun help = run({"working-set", "--help"});
  CHECK(contains(help.out, "fetch --working-set"));
  CHECK_FALSE(contains(help.out, "prepare"));
  CHECK_FALSE(contains(help.out, "bundle"));
}

TEST_CASE("presets lists models and devices, and shows one with its sources") {
  const ToolRun all = run({"presets"});
  CHECK(all.exit_code == 0);
  CHECK(contains(all.out, "gpt-oss-120b"));
  CHECK(contains(all.out, "b200"));
  const auto one = json_of(run({"presets", "b200", "deepseek-v3", "--json"}));
  REQUIRE(one["devices"].size() == 1);
  CHECK(one["devices"][0]["num_sms"] == 148);
  REQUIRE(one["models"].size() == 1);
  CHECK(one["models"][0]["attention"].size() == 2);
  const ToolRun missing = run({"presets", "no-such-thing"});
  CHECK(missing.exit_code == 2);
  CHECK(contains(missing.err, "no model preset is called 'no-such-thing'"));
}

TEST_CASE("working-set says which limits nobody gave") {
  const Arguments shape = {"--batch", "1..4", "--max-kv-len", "..256"};
  const ToolRun bare = run(with(kDeployment, shape));
  CHECK(bare.exit_code == 0);
  CHECK(contains(bare.err,
                 "note: not given, so the set is for these alone: --phase decode, "
                 "--dtype-q bf16, --page-size 64, --max-q-len 1\n"));
  CHECK(run(with(with(kDeployment, shape), {"--quiet"})).err.empty());
  const ToolRun some = run(with(with(kDeployment, shape), {"--dtype-q", "e4m3", "--s-qo", "1..8"}));
  CHECK(contains(some.err, "alone: --phase decode, --page-size 64\n"));
  const ToolRun all = run(
      with(with(kDeployment, kLimits), {"--phase", "decode", "--max-kv-len", "..256", "--json"}));
  CHECK(all.exit_code == 0);
  CHECK(all.err.empty());
  const ToolRun help = run({"working-set", "--help"});
  CHECK(contains(help.out, "--phase decode, --dtype-q bf16 (--dtype-kv as --dtype-q)"));
}

TEST_CASE("working-set gives the example's kernels, a file that reads back, and passes its check") {
  const test::Scratch scratch;
  const ToolRun done =
      run(with(with(kDeployment, kLimits), {"-o", scratch / "set.json", "--check", "20000"}));
  CAPTURE(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK(contains(done.out, "15 of 13452 kernels"));
  CHECK(contains(done.err, "none outside the set"));
  const auto set = workingset::load_set(scratch / "set.json");
  REQUIRE(set);
  CHECK(set->kernels.size() == 15);
  const auto json = json_of(run(with(with(kDeployment, kLimits), {"--json"})));
  CHECK(json["totals"]["kernels"] == 15);
  CHECK(json["totals"]["all_kernels"] == 13452);
  CHECK(json["kernels"][0]["witness"]["phase"] == "decode");
}

TEST_CASE("working-set refuses what it cannot answer, and writes nothing") {
  const test::Scratch scratch;
  const auto refuse = [&](const Arguments& more, int exit_code, const std::string& words) {
    const ToolRun done = run(with(with(kDeployment, more), {"-o", scratch / "set.json"}));
    CAPTURE(words, done.err);
    CHECK(done.exit_code == exit_code);
    CHECK(contains(done.err, words));
    CHECK_FALSE(std::filesystem::exists(scratch / "set.json"));
  };
  refuse({}, 2, "--batch is missing");
  refuse({"--batch", "8..2"}, 2, "ends before it starts");
  refuse({"--batch", "1..70000"}, 2, "batch is 70000");
  refuse({"--batch", "1", "--max-kv-len", "0"}, 2, "--max-kv-len");
  refuse({"--batch", "1", "--num-q-heads", "8"}, 2, "--num-q-heads contradicts --model");
  refuse({"--batch", "1", "--tp", "3"}, 2, "does not divide the 64 query heads");
  refuse({"--batch", "1", "--dtype-kv", "fp8"}, 2, "dtype_kv is 'fp8'");
  refuse({"--batch", "1", "--page-size", "8"}, 3, "have no kernel");
  refuse({"--batch", "1", "--page-size", "8,32", "--no-gaps"}, 3, "some problems of the range");
  refuse({"--batch", "1", "--overrides", scratch / "none.json"}, 2, "none.json");
}

TEST_CASE("ranges that are empty or inverted are refused by field, wherever they are given") {
  struct Row {
    std::string flag, text, words;
  };
  const std::vector<Row> rows = {
      {"batch", "8..2", "--batch '8..2': the range ends before it starts"},
      {"batch", "", "--batch"},
      {"batch", "0", "--batch"},
      {"max-q-len", "4..1", "--max-q-len"},
      {"max-q-len", "..", "--max-q-len"},
      {"max-kv-len", "9..", "--max-kv-len"},
      {"max-kv-len", "x", "--max-kv-len"}};
  const Arguments set = {"working-set", "-m", "flashinfer-0.6.13"};
  const Arguments map = {"map", "flashinfer-0.6.13"};
  const Arguments compare = {"select", "--compare", "flashinfer-0.6.8", "flashinfer-0.6.13"};
  for (const Row& row : rows) {
    for (const Arguments& command : {set, map, compare}) {
      Arguments all = with(command, {"--model", "qwen3-8b", "--device", "b200"});
      if (row.flag != "batch") all = with(all, {"--batch", "1..4"});
      const ToolRun done = run(with(all, {"--" + row.flag, row.text}));
      CAPTURE(command[0], row.flag, row.text, done.err);
      CHECK(done.exit_code == 2);
      CHECK(contains(done.err, row.words));
      CHECK(done.out.empty());
    }
  }
}

TEST_CASE("models and devices that are not known, and files that are none, are refused by name") {
  const test::Scratch scratch;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(scratch / name) << text;
    return scratch / name;
  };
  const std::string heads = R"("num_attention_heads":32,"hidden_size":4096)";
  struct Row {
    std::string model, device, words;
  };
  const std::vector<Row> rows = {
      {"gpt-oss-999b", "b200", "no model preset is called 'gpt-oss-999b'"},
      {"qwen3-8b", "b9000", "no device preset is called 'b9000'"},
      {scratch / "none/config.json", "b200", "none/config.json"},
      {write("a.json", "{"), "b200", "a.json"},
      {write("b.json", R"({"model_type":"mamba2"})"), "b200", "/model_type: 'mamba2' is not known"},
      {write("c.json", R"({"model_type":"llama",)" + heads + "}"), "b200",
       "/num_hidden_layers: the key is missing"},
      {write("d.json", R"({"model_type":"llama","num_hidden_layers":2,"num_key_value_heads":5,)" +
                           heads + "}"),
       "b200", "num_q_heads is 32; it must be a multiple of num_kv_heads, 5"},
      {write("e.json", R"({"model_type":"gpt_oss","num_hidden_layers":3,"num_attention_heads":64,)"
                       R"("num_key_value_heads":8,"sliding_window":128,)"
                       R"("layer_types":["full_attention"]})"),
       "b200", "has 1 entries and num_hidden_layers is 3"}};
  for (const Row& row : rows) {
    for (const Arguments& command : {Arguments{"working-set", "-m", "flashinfer-0.6.13"},
                                     Arguments{"map", "flashinfer-0.6.13"}}) {
      const ToolRun done =
          run(with(command, {"--model", row.model, "--device", row.device, "--batch", "1"}));
      CAPTURE(command[0], row.model, row.device, done.err);
      CHECK(done.exit_code == 2);
      CHECK(contains(done.err, row.words));
      CHECK(done.out.empty());
    }
  }
}

TEST_CASE("a user's model file and a Hugging Face config.json stand where a preset's name does") {
  const test::Scratch scratch;
  std::ofstream(scratch / "mine.json") <<
      R"({"schema":"cubist.models","schema_version":1,"models":[{"name":"mine","max_kv_len":4096,
          "attention":[{"name":"full","layers":2,"num_q_heads":32,"num_kv_heads":8,
                        "head_dim_qk":128}]}]})";
  const Arguments rest = {"--device", "b200", "--batch", "1..8", "--page-size", "32", "--json"};
  const auto mine = json_of(run(with({"working-set", "-m", "flashinfer-0.6.13", "--presets",
                                      scratch / "mine.json", "--model", "mine"},
                                     rest)));
  CHECK(mine["query"]["model"] == "mine");
  const std::string config = CUBIST_SOURCE_DIR "/tests/unit/presets/configs/qwen3.json";
  const auto theirs =
      json_of(run(with({"working-set", "-m", "flashinfer-0.6.13", "--model", config}, rest)));
  CHECK(theirs["totals"]["kernels"].get<int>() > 0);
}

TEST_CASE("select --compare takes the same manifest under two devices or two revisions") {
  const auto compare = [](const std::string& before, const std::string& after) {
    return json_of(
        run({"select", "--compare", before, after, "--model", "deepseek-v3", "--batch", "1..64",
             "--max-kv-len", "..8192", "--page-size", "32", "--device", "b200", "--json"}));
  };
  const auto devices = compare("flashinfer-0.6.13", "flashinfer-0.6.13,device=gb200");
  CHECK(devices["problems"] == 64 * 8192);
  CHECK(devices["changed"].get<std::int64_t>() > 0);
  CHECK(devices["appears"] == 0);
  const auto revisions =
      compare("flashinfer-0.6.13,revision=trtllm-gen-fmha-0.6.8", "flashinfer-0.6.13");
  CHECK(revisions["changed"].get<std::int64_t>() > 0);
  const auto same = compare("flashinfer-0.6.13", "flashinfer-0.6.13");
  CHECK(same["same"] == same["problems"]);
}

TEST_CASE("select --compare tells what an upgrade changes") {
  const Arguments sides = {"select",  "--compare",   "flashinfer-0.6.8", "flashinfer-0.6.13",
                           "--model", "deepseek-v3", "--device",         "b200"};
  const ToolRun text = run(with(sides, {"--batch", "1..16"}));
  CHECK(text.exit_code == 0);
  CHECK(contains(text.out, "multi_ctas_kv_mode cga_smem -> gmem"));
  const auto json = json_of(run(with(sides, {"--batch", "1..16", "--json"})));
  CHECK(json["problems"] == 16 * 163840);
  CHECK(json["changed"].get<std::int64_t>() > 0);
  CHECK(json["same"].get<std::int64_t>() + json["rebuilt"].get<std::int64_t>() +
            json["changed"].get<std::int64_t>() + json["appears"].get<std::int64_t>() +
            json["vanishes"].get<std::int64_t>() + json["refused"].get<std::int64_t>() ==
        json["problems"].get<std::int64_t>());
  const ToolRun side = run({"select", "--compare", "flashinfer-0.6.8,rev=1", "flashinfer-0.6.13",
                            "--model", "deepseek-v3", "--device", "b200", "--batch", "1"});
  CHECK(side.exit_code == 2);
  CHECK(contains(side.err, "neither device=NAME nor revision=NAME"));
}

}  // namespace cubist
