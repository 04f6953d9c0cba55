// `cubist tune` against the driver's stand-in, whose launches take the time that their grid says.

#include <cstdlib>
#include <filesystem>
#include <sstream>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"
#include "support/scratch.h"
#include "support/stand_in_gpu.h"
#include "support/tool.h"
#include "support/tool_json.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;
using test::Environment;
using test::json_of;
using test::run_tool;
using test::Scratch;
using test::ToolRun;

struct Fixture : test::StandInGpu {
  const Environment clock{Environment::Values{{"CUBIST_FAKE_CUDA_CLOCK", "1"}}};
  const Scratch folder;
  const std::string file = folder / "tuned.json";

  ToolRun tune(std::vector<std::string> more = {}) const {
    std::vector<std::string> words = {"tune", "-o", file, "--memory-mib", "32"};
    words.insert(words.end(), more.begin(), more.end());
    return run_tool(words);
  }
};

std::string text_of(const std::string& file) { return read_text_file(file, 1 << 20).value(); }

const std::vector<std::string> kProblem = {
    "--num-q-heads", "64",   "--num-kv-heads", "8",  "--head-dim", "64",  "--batch", "8",
    "--max-kv-len",  "8192", "--page-size",    "64", "--device",   "h200"};

ToolRun select(std::vector<std::string> more) {
  std::vector<std::string> words = {"select", "--manifest", "cubist-decode"};
  words.insert(words.end(), kProblem.begin(), kProblem.end());
  words.insert(words.end(), more.begin(), more.end());
  return run_tool(words);
}

TEST_CASE("a grid is measured, a model fitted and written, and selection reads it and says so") {
  const Fixture fixture;
  const ToolRun run = fixture.tune({"--json"});
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  const auto document = json_of(run);
  CHECK(document["gpu"] == "Fake H200");
  CHECK(document["grid"] == "quick");
  const auto& over_best = document["choice_over_best"];
  CHECK(over_best["tuned"]["problems"] > 20);
  const bool better = over_best["tuned"]["mean"] <= over_best["shipped"]["mean"];
  CHECK(document["model"] == (better ? "tuned" : "shipped"));
  CHECK(document["measured"].size() > 60);
  for (const auto& row : document["measured"]) CHECK(row["us"] >= 5.0);

  const ToolRun shipped = select({"--explain"});
  CHECK_THAT(shipped.out, Contains("times by the shipped model"));
  const ToolRun tuned = select({"--explain", "--overrides", fixture.file});
  CHECK(tuned.exit_code == 0);
  CHECK_THAT(tuned.out,
             Contains("times by the model of " + fixture.file) && Contains("tuned on 'Fake H200'"));
  std::vector<std::string> words = {"launch", "--dry-run", "--overrides", fixture.file};
  words.insert(words.end(), kProblem.begin(), kProblem.end());
  CHECK(run_tool(words).exit_code == 0);
}

/// The lines of a command's help that begin with its program's name.
std::vector<std::string> examples_of(const std::string& command) {
  std::istringstream help(run_tool({command, "--help"}).out);
  std::vector<std::string> found;
  for (std::string line; std::getline(help, line);) {
    if (line.starts_with("  cubist ")) found.push_back(line.substr(2));
  }
  return found;
}

TEST_CASE("the examples of the help run as they stand, one after the other") {
  const Fixture fixture;
  const Environment gpus(Environment::Values{{"CUBIST_FAKE_CUDA_DEVICES", "90,90"}});
  const std::string tool = CUBIST_TOOL;
  const std::vector<std::string> examples = examples_of("tune");
  REQUIRE(examples.size() == 4);
  for (const std::string& example : examples) {
    const std::string command = "cd '" + fixture.folder.path() + "' && PATH='" +
                                tool.substr(0, tool.rfind('/')) + "':\"$PATH\" && ( " + example +
                                " ) >out 2>err";
    const int exit_code = WEXITSTATUS(std::system(command.c_str()));
    INFO(example << ": " << text_of(fixture.folder / "err"));
    // With a clock the stand-in computes nothing, which a launch notices: 1, all else being well.
    CHECK(exit_code == (example.starts_with("cubist launch") ? 1 : 0));
  }
  CHECK_THAT(text_of(fixture.folder / "tuned-measured.json"), Contains("\"measured\""));
}

TEST_CASE("the same times give the same file") {
  const Fixture fixture;
  CHECK(fixture.tune().exit_code == 0);
  const std::string first = text_of(fixture.file);
  CHECK(fixture.tune({"--quiet"}).out.empty());
  CHECK(text_of(fixture.file) == first);
  CHECK_THAT(first, Contains("\"decode_model\"") && Contains("\"gpu\": \"Fake H200\"") &&
                        Contains("problems of the quick grid"));
}

TEST_CASE(
    "without a GPU, or with one that no kernel is for, the exit code is 9, and nothing is "
    "written") {
  const Fixture fixture;
  {
    const Environment none(Environment::Values{{"CUBIST_LIBCUDA", "/no/libcuda.so"}});
    const ToolRun run = fixture.tune();
    CHECK(run.exit_code == 9);
    CHECK_THAT(run.err, Contains("/no/libcuda.so"));
  }
  {
    const Environment other(Environment::Values{{"CUBIST_FAKE_CUDA_DEVICES", "89"}});
    const ToolRun run = fixture.tune({"--json"});
    CHECK(run.exit_code == 9);
    CHECK(json_of(run)["error"]["code"] == "device_mismatch");
    CHECK_THAT(run.out, Contains("sm_89"));
  }
  {
    const Environment failing(
        Environment::Values{{"CUBIST_FAKE_CUDA_FAIL", "cuLaunchKernelEx=700"}});
    CHECK(fixture.tune().exit_code == 9);
  }
  CHECK_FALSE(std::filesystem::exists(fixture.file));
}

TEST_CASE("without a file to write, and for a manifest without decode kernels, it is refused") {
  const Fixture fixture;
  CHECK(run_tool({"tune"}).exit_code == 2);
  const ToolRun run = fixture.tune({"--manifest", "flashinfer-0.6.13"});
  CHECK(run.exit_code == 9);
  CHECK_THAT(run.err, Contains("no decode kernel"));
}

}  // namespace
}  // namespace cubist
