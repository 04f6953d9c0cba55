#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/catch.h"
#include "support/scratch.h"
#include "support/synthetic_cubin.h"
#include "support/tool.h"
#include "support/tool_json.h"
#include "support/zip_writer.h"

namespace cubist {
namespace {

using test::json_of;
using test::run_tool;
using test::Scratch;
using test::ToolRun;

std::vector<std::uint8_t> cubin_named(const std::string& name) {
  test::SyntheticKernel kernel;
  kernel.name = name;
  kernel.params = {8, 1272};
  kernel.smem = 41'200;
  kernel.cluster = std::array<std::uint32_t, 3>{2, 1, 1};
  kernel.two_cta_mma = true;
  return test::make_cubin({.kernels = {kernel}}).bytes;
}

void put(const std::string& path, const std::vector<std::uint8_t>& bytes) {
  REQUIRE(write_file_atomically(path, bytes));
}

/// A folder with two cubins, and a wheel with the same two beside a text file.
struct Fixture {
  Fixture() {
    std::filesystem::create_directories(scratch / "pack/fmha");
    put(scratch / "pack/fmha/one.cubin", cubin_named("one"));
    put(scratch / "pack/two.cubin", cubin_named("two"));
    put(scratch / "pack/readme.txt", {'x'});
    const auto text = [](const std::vector<std::uint8_t>& b) {
      return std::string(b.begin(), b.end());
    };
    put(scratch / "a.whl", test::make_zip({{"pack/fmha/one.cubin", text(cubin_named("one")), true},
                                           {"pack/two.cubin", text(cubin_named("two")), true},
                                           {"pack/readme.txt", "x"}})
                               .bytes);
  }
  const Scratch scratch;
};

std::vector<std::string> kernels_of(const nlohmann::json& document) {
  std::vector<std::string> names;
  for (const auto& cubin : document["cubins"]) {
    for (const auto& entry : cubin["entries"]) {
      if (!entry["is_smem_size_entry"]) names.push_back(entry["name"]);
    }
  }
  return names;
}

TEST_CASE("inspect prints what a cubin says of itself") {
  const Fixture fixture;
  const ToolRun run = run_tool({"inspect", fixture.scratch / "pack/two.cubin"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  for (const char* line :
       {"arch sm_100f", "assembled by CUDA 12.9", "size entry twoGetSmemSize", "kernel two\n",
        "parameters   1280 bytes in 2 parameters (bytes at offset: 8@0 1272@8)",
        "threads      512 (512 x 1 x 1)", "registers    128", "smem         41200 bytes",
        "cluster      2 x 1 x 1", "two-CTA MMA  yes"}) {
    CHECK_THAT(run.out, Catch::Contains(line));
  }
}

TEST_CASE("inspect --json gives every fact a field") {
  const Fixture fixture;
  const std::string path = fixture.scratch / "pack/two.cubin";
  const auto document = json_of(run_tool({"inspect", "--json", path}));
  REQUIRE(document["cubins"].size() == 1);
  CHECK(document["errors"].empty());
  const auto& cubin = document["cubins"][0];
  CHECK(cubin["file"] == path);
  CHECK(cubin["arch"] == "sm_100f");
  CHECK(cubin["arch_is_exact"] == true);
  CHECK(cubin["sha256"].get<std::string>().size() == 64);
  const auto& kernel = cubin["entries"][1];
  CHECK(kernel["name"] == "two");
  CHECK(kernel["param_bytes"] == 1280);
  CHECK(kernel["params"][1]["offset"] == 8);
  CHECK(kernel["threads"] == 512);
  CHECK(kernel["smem"] == 41'200);
  CHECK(kernel["static_smem"] == 0);
  CHECK(kernel["cluster"] == nlohmann::json({2, 1, 1}));
  CHECK(kernel["two_cta_mma"] == true);
  CHECK(cubin["entries"][0]["threads"].is_null());
}

TEST_CASE("inspect reads wheels, single members, globs and folders") {
  const Fixture fixture;
  const std::string wheel = fixture.scratch / "a.whl";
  const std::string folder = fixture.scratch / "pack";
  struct Case {
    std::vector<std::string> arguments;
    std::vector<std::string> kernels;
  };
  const std::vector<Case> cases = {
      {{wheel}, {"one", "two"}},
      {{wheel, "--member", "*fmha*"}, {"one"}},
      {{wheel + "!pack/two.cubin"}, {"two"}},
      {{wheel + "!*/fmha/*"}, {"one"}},
      {{"-r", folder}, {"one", "two"}},
      {{"-r", folder, "--member", "two*"}, {"two"}},
      {{folder + "/two.cubin", wheel + "!pack/fmha/one.cubin"}, {"two", "one"}},
  };
  for (const Case& one : cases) {
    std::vector<std::string> words = {"inspect", "--json"};
    words.insert(words.end(), one.arguments.begin(), one.arguments.end());
    const ToolRun run = run_tool(words);
    CHECK(run.exit_code == 0);
    CHECK(kernels_of(json_of(run)) == one.kernels);
  }
}

TEST_CASE("inspect goes on after a bad file and ends with the integrity code") {
  const Fixture fixture;
  const std::string bad = fixture.scratch / "pack/readme.txt";
  const ToolRun run = run_tool(
      {"inspect", "--json", bad, fixture.scratch / "missing", fixture.scratch / "pack/two.cubin"});
  CHECK(run.exit_code == 4);
  CHECK_THAT(run.err, Catch::Contains("'" + bad + "' is no usable cubin: it has 1 bytes"));
  const auto document = json_of(run);
  CHECK(kernels_of(document) == std::vector<std::string>{"two"});
  REQUIRE(document["errors"].size() == 2);
  CHECK(document["errors"][0]["file"] == bad);
  CHECK(document["errors"][0]["error"]["code"] == "integrity");
  CHECK(document["errors"][1]["error"]["code"] == "not_found");
}

TEST_CASE("inspect says what to do about a folder, an empty match and a missing file") {
  const Fixture fixture;
  const ToolRun folder = run_tool({"inspect", fixture.scratch / "pack"});
  CHECK(folder.exit_code == 2);
  CHECK_THAT(folder.err, Catch::Contains("is a folder; add -r"));
  const ToolRun nothing = run_tool({"inspect", fixture.scratch / "a.whl", "--member", "*.so"});
  CHECK(nothing.exit_code == 2);
  CHECK_THAT(nothing.err, Catch::Contains("has no file that matches '*.so'"));
  CHECK(run_tool({"inspect"}).exit_code == 2);
  CHECK(run_tool({"inspect", fixture.scratch / "missing"}).exit_code == 2);
}

TEST_CASE("inspect --help shows how to use it") {
  const ToolRun run = run_tool({"inspect", "--help"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Catch::Contains("Examples:"));
  CHECK_THAT(run.out, Catch::Contains("--member"));
}

}  // namespace
}  // namespace cubist
