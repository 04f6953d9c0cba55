#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "support/catch.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"
#include "support/scratch.h"
#include "support/tool.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;
using test::Environment;
using test::run_tool;
using test::Scratch;
using test::ToolRun;

nlohmann::json doctor_json(const std::vector<std::string>& flags = {}) {
  std::vector<std::string> arguments = {"doctor", "--json"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ToolRun run = run_tool(arguments);
  CAPTURE(run.out, run.err);
  REQUIRE(run.exit_code == 0);
  auto document = nlohmann::json::parse(run.out, nullptr, false);
  REQUIRE_FALSE(document.is_discarded());
  return document;
}

TEST_CASE("doctor shows driver, devices, store, manifests and pip") {
  const Scratch store;
  const Environment environment(Environment::Values{{"CUBIST_LIBCUDA", test::fake_libcuda_path()},
                                                    {"CUBIST_FAKE_CUDA_DEVICES", "90,100"}});
  const nlohmann::json report = doctor_json({"--store", store.path()});
  CHECK(report["driver"]["found"] == true);
  CHECK(report["driver"]["cuda_version"] == "13.0");
  CHECK(report["driver"]["devices"].size() == 2);
  CHECK(report["driver"]["devices"][1]["sm"] == 100);
  CHECK(report["store"]["root"] == store.path());
  CHECK(report["store"]["exists"] == true);
  CHECK(report["store"]["writable"] == true);
  CHECK(report["store"]["entries"] == 0);
  CHECK(report["store"]["free_bytes"] > 0);
  bool own_manifest = false;
  for (const auto& manifest : report["manifests"]) {
    CHECK_FALSE(manifest.contains("problem"));
    own_manifest = own_manifest || manifest["name"] == "cubist-decode";
  }
  CHECK(own_manifest);
  CHECK(report["pip"].contains("found"));

  const ToolRun text = run_tool({"doctor", "--store", store.path()});
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, Contains("CUDA 13.0") && Contains("sm_100") && Contains("cubist-decode: "));
}

TEST_CASE("doctor counts what is in the store and what is unfinished") {
  const Scratch store;
  const std::string digest(64, 'a');
  std::filesystem::create_directories(store / "sha256/aa");
  std::filesystem::create_directories(store / "tmp");
  std::ofstream(store / ("sha256/aa/" + digest + ".cubin")) << "12345";
  std::ofstream(store / "sha256/aa/readme") << "x";
  std::ofstream(store / "tmp/1-a.part") << "x";
  const nlohmann::json report = doctor_json({"--store", store.path()});
  CHECK(report["store"]["entries"] == 1);
  CHECK(report["store"]["entry_bytes"] == 5);
  CHECK(report["store"]["unfinished_files"] == 1);
}

TEST_CASE("a machine with nothing on it is a report, not an error") {
  const Scratch scratch;
  const Environment environment(Environment::Values{{"CUBIST_LIBCUDA", "/no/libcuda.so"},
                                                    {"CUBIST_PYTHON", "/no/python3"},
                                                    {"CUBIST_BEARER_TOKEN", "host=secret"}});
  const ToolRun run = run_tool({"doctor", "--store", scratch / "not/there/yet"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("driver    none: ") && Contains("'/no/libcuda.so'"));
  CHECK_THAT(run.out, Contains("not there yet"));
  CHECK_THAT(run.out, Contains("pip       none: "));
  CHECK_THAT(run.out, Contains("CUBIST_BEARER_TOKEN=(set)") && !Contains("secret"));
  CHECK_FALSE(std::filesystem::exists(scratch / "not"));
}

TEST_CASE("a broken manifest is named and does not stop the report") {
  const Scratch folder;
  std::ofstream(folder / "broken.json") << "{";
  const Environment environment(Environment::Values{{"CUBIST_MANIFESTS", folder.path()}});
  const ToolRun run = run_tool({"doctor"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("broken: INVALID: "));
}

}  // namespace
}  // namespace cubist
