#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"
#include "support/tool.h"

// select and working-set under a rule file, from outside.

namespace cubist {
namespace {

using test::run_tool;
using test::ToolRun;
using Arguments = std::vector<std::string>;

Arguments with(Arguments base, const Arguments& more) {
  base.insert(base.end(), more.begin(), more.end());
  return base;
}

struct Rules {
  test::Scratch scratch;
  test::Environment shipped{
      test::Environment::Values{{"CUBIST_PRESETS", CUBIST_SOURCE_DIR "/data/presets"},
                                {"CUBIST_MANIFESTS", CUBIST_SOURCE_DIR "/manifests"}}};
  std::string path = scratch / "rules.json";

  void write(const std::string& members) const {
    std::ofstream(path) << R"({"schema":"cubist.overrides","schema_version":1,)" << members << "}";
  }

  /// GPT-OSS decode for which the published rules take tile_q 8.
  ToolRun select(const Arguments& more = {}, const std::string& batch = "4") const {
    const Arguments base = {"select",
                            "-m",
                            "flashinfer-0.6.13",
                            "--device",
                            "b200",
                            "--num-q-heads",
                            "64",
                            "--batch",
                            batch,
                            "--head-dim",
                            "64",
                            "--num-kv-heads",
                            "8",
                            "--dtype-q",
                            "e4m3",
                            "--dtype-kv",
                            "e4m3",
                            "--dtype-o",
                            "bf16",
                            "--page-size",
                            "32",
                            "--max-kv-len",
                            "8192"};
    return run_tool(with(base, more));
  }
  nlohmann::json select_json(const Arguments& more) const {
    const ToolRun done = select(with(more, {"--json"}));
    CAPTURE(done.out, done.err);
    auto document = nlohmann::json::parse(done.out, nullptr, false);
    REQUIRE_FALSE(document.is_discarded());
    return document;
  }
  ToolRun working_set(const Arguments& more) const {
    return run_tool(
        with({"working-set", "-m", "flashinfer-0.6.13", "--model", "gpt-oss-120b", "--device",
              "b200", "--batch", "1..64", "--dtype-q", "e4m3", "--page-size", "32"},
             more));
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE_METHOD(Rules, "select under rules takes what they force and says so") {
  write(R"("rules":[{"name":"wide","reason":"measured faster","when":{"batch":{"max":8}},
                     "force":{"tile_q":32}},
                    {"name":"late","force":{"tile_q":16}},
                    {"name":"elsewhere","when":{"batch":9},"forbid":{"tile_q":32}}])");
  CHECK(contains(select().out, "tile_q 8,"));
  const ToolRun ruled = select({"--overrides", path, "--explain"});
  CAPTURE(ruled.out, ruled.err);
  CHECK(ruled.exit_code == 0);
  CHECK(contains(ruled.out, "tile_q 32,"));
  CHECK(contains(ruled.out, "rule 'wide' forces tile_q 32 (measured faster)"));
  CHECK(contains(ruled.out, "rule 'late'; its force does not count, as rule 'wide' comes first"));
  CHECK_FALSE(contains(ruled.out, "elsewhere"));
  const auto json = select_json({"--overrides", path, "--explain"});
  CHECK(contains(json["explain"].dump(), "rule 'wide' forces tile_q 32 (measured faster)"));
  CHECK(json["ok"] == true);
}

TEST_CASE_METHOD(Rules, "a kernel barred by hash is not taken, and explain gives the reason") {
  const std::string hash = select_json({})["sha256"];
  write(R"("bar":[{"sha256":")" + hash + R"(","reason":"wrong results seen"}])");
  const auto barred = select_json({"--overrides", path, "--explain"});
  CHECK(barred["sha256"] != hash);
  CHECK(contains(barred["explain"]["barred"].dump(), "wrong results seen"));
  const ToolRun text = select({"--overrides", path, "--explain"});
  CHECK(contains(text.out, "(wrong results seen)"));
}

TEST_CASE_METHOD(Rules, "rules hold line by line and along a sweep") {
  write(R"("rules":[{"name":"r","when":{"batch":{"max":2}},"force":{"tile_q":16}}])");
  const ToolRun sweep = select({"--overrides", path, "--sweep", "--csv"}, "2..4");
  CAPTURE(sweep.out, sweep.err);
  CHECK(sweep.exit_code == 0);
  CHECK(contains(sweep.out, "Q16"));
  CHECK(contains(sweep.out, "Q8"));
}

TEST_CASE_METHOD(Rules, "a working set under rules is theirs, checked, and says which they were") {
  write(R"("rules":[{"name":"no-clusters","forbid":{"multi_ctas_kv_mode":"cga_smem"}}])");
  const std::string plain = working_set({"--json"}).out;
  const ToolRun ruled = working_set({"--overrides", path, "--json", "--check", "5000"});
  CAPTURE(ruled.err);
  CHECK(ruled.exit_code == 0);
  CHECK(contains(ruled.err, "none outside the set"));
  CHECK(contains(plain, "CgaVarSeq"));
  CHECK_FALSE(contains(ruled.out, "CgaVarSeq"));
  CHECK(contains(ruled.out, path));
}

TEST_CASE_METHOD(Rules, "rule files that match nothing or are none are refused by field") {
  struct Row {
    std::string members;
    std::string words;
  };
  const std::vector<Row> rows = {
      {R"("rules":[])", "neither bar nor rules"},
      {R"("rules":[{"name":"r"}])", "/rules/0: the rule does nothing"},
      {R"("rules":[{"name":"r","forbid":{"tile_q":48}}])", "forbid matches no kernel"},
      {R"("rules":[{"name":"r","force":{"tile":8}}])", "tile"},
      {R"("rules":[{"name":"r","when":{"head_dim_qk":65},"force":{"tile_q":8}}])",
       "head_dim_qk 65"},
      {R"("rules":[{"name":"r","when":{"batch":{"min":9,"max":3}},"force":{"tile_q":8}}])",
       "/rules/0/when/batch"},
      {R"("rules":[{"name":"r","when":{"dtype_q":"fp7"},"force":{"tile_q":8}}])",
       "/rules/0/when/dtype_q"},
      {R"("rules":[{"name":"r","when":{"page_size":48},"force":{"tile_q":8}}])",
       "/rules/0/when/page_size: page_size is 48; it must be a power of two"},
      {R"("rules":[{"name":"r","when":{"page_size":{"min":33,"max":63}},"force":{"tile_q":8}}])",
       "/rules/0/when/page_size: no value in this range is possible"},
      {R"("rules":[{"name":"r","when":{"batch":-1},"force":{"tile_q":8}}])",
       "/rules/0/when/batch: batch is -1; it must be 1.."},
      {R"("rules":[{"name":"r","when":{"batch":[4,0]},"force":{"tile_q":8}}])",
       "/rules/0/when/batch/1: batch is 0; it must be 1.."},
      {R"("rules":[{"name":"r","when":{"num_q_heads":99999999},"force":{"tile_q":8}}])",
       "/rules/0/when/num_q_heads: num_q_heads is 99999999; it must be 1.."},
      {R"("bar":[{"sha256":")" + std::string(64, 'a') + R"(","reason":""}])", "/bar/0/reason"},
      {R"("bar":[{"sha256":")" + std::string(64, 'a') + R"(","reason":"x"},{"sha256":")" +
           std::string(64, 'a') + R"(","reason":"y"}])",
       "/bar/1/sha256: another bar has this sha256"},
      {R"("bar":[{"sha256":"abc","reason":"x"}])", "/bar/0/sha256"},
      {R"("bar":[{"sha256":")" + std::string(64, 'a') + R"("}])", "/bar/0/reason"},
      {R"("bar":[{"sha256":")" + std::string(64, 'a') + R"(","reason":"x"}])",
       "no kernel of the manifest has the sha256"}};
  for (const Row& row : rows) {
    write(row.members);
    for (const ToolRun& done : {select({"--overrides", path}),
                                working_set({"--overrides", path, "-o", scratch / "s.json"})}) {
      CAPTURE(row.members, done.err);
      CHECK(done.exit_code == 2);
      CHECK(contains(done.err, "rules.json"));
      CHECK(contains(done.err, row.words));
      CHECK(done.out.empty());
    }
    CHECK_FALSE(std::filesystem::exists(scratch / "s.json"));
  }
}

}  // namespace cubist
