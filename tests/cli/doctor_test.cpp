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

/// The finding about a setting; a failure without one.
nlohmann::json finding_of(const nlohmann::json& report, const std::string& setting) {
  for (const auto& finding : report["findings"]) {
    if (finding["setting"] == setting) return finding;
  }
  FAIL("no finding about " << setting << " in " << report["findings"].dump(2));
  return {};
}

TEST_CASE("every wrong setting is a finding, wherever it was set, and the report goes on") {
  const Scratch folder;
  const std::string config = folder / "config.json";
  std::ofstream(config) << R"({
    "stoer": "/s",
    "store": ")" << folder / "store"
                        << R"(",
    "revocations": ["/no/revoked.json"],
    "sources": null,
    "base_stores": ["relative"]
  })";
  std::ofstream(folder / "short.pub") << "untrusted comment: x\nRWabc\n";
  const Environment environment(Environment::Values{
      {"CUBIST_CONFIG", config},
      {"CUBIST_STORE", std::nullopt},
      {"CUBIST_FOREIGN_STORE", "maybe"},
      {"CUBIST_MANIFEST_SIGNATURES", "always"},
      {"CUBIST_TRUSTED_KEYS",
       "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3 ./short.pub nonsense"},
      {"CUBIST_MANIFESTS", folder / "nowhere"},
      {"CUBIST_SOURCES", "ftp://host/x /no/folder"},
      {"CUBIST_LOG_LEVEL", "loud"},
      {"CUBIST_BEARER_TOKEN", "hunter2"},
      {"CUBIST_LIBCUDA", "/no/libcuda.so"},
      {"CUBIST_STOER", "x"}});
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const ToolRun run = run_tool({"doctor", "--json"});
  const ToolRun text = run_tool({"doctor"});
  std::filesystem::current_path(before);
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 2);
  const auto report = nlohmann::json::parse(run.out);
  CHECK(report["error"]["code"] == "invalid_argument");
  CHECK(report["error"]["exit_code"] == 2);

  CHECK_THAT(finding_of(report, config + ":2: (document)")["problem"].get<std::string>(),
             Contains("unknown key 'stoer'"));
  CHECK_THAT(finding_of(report, config + ":5: /sources")["problem"].get<std::string>(),
             Contains("found null"));
  CHECK_THAT(finding_of(report, config + ":6: /base_stores/0")["problem"].get<std::string>(),
             Contains("'relative' is no absolute path"));
  CHECK_THAT(finding_of(report, config + ":4: /revocations")["problem"].get<std::string>(),
             Contains("'/no/revoked.json'"));
  const auto policy = finding_of(report, "CUBIST_FOREIGN_STORE");
  CHECK(policy["found"] == "maybe");
  CHECK(policy["allowed"] == "allow, warn, refuse");
  CHECK(policy["severity"] == "error");
  CHECK(policy["next_step"] == "correct CUBIST_FOREIGN_STORE or unset it");
  CHECK(finding_of(report, "CUBIST_MANIFEST_SIGNATURES")["found"] == "always");
  CHECK(finding_of(report, "CUBIST_LOG_LEVEL")["severity"] == "warning");
  CHECK(finding_of(report, "CUBIST_MANIFESTS")["found"] == folder / "nowhere");
  CHECK(finding_of(report, "CUBIST_LIBCUDA")["severity"] == "warning");
  CHECK(finding_of(report, "CUBIST_STOER")["severity"] == "warning");
  CHECK(finding_of(report, "CUBIST_BEARER_TOKEN")["allowed"] == "host=token, separated by ','");
  CHECK_THAT(run.out + text.out, !Contains("hunter2"));
  std::size_t keys = 0;
  std::size_t sources = 0;
  for (const auto& finding : report["findings"]) {
    keys += finding["setting"] == "CUBIST_TRUSTED_KEYS" ? 1 : 0;
    sources += finding["setting"] == "CUBIST_SOURCES" ? 1 : 0;
  }
  CHECK(keys == 2);
  CHECK(sources == 2);

  // Whatever is right is in the report as ever.
  CHECK(report["store"]["root"] == folder / "store");
  CHECK(report["trust"]["keys"].size() == 1);
  CHECK_FALSE(report["trust"].contains("problem"));
  bool own_manifest = false;
  for (const auto& manifest : report["manifests"]) {
    CHECK_FALSE(manifest.contains("problem"));
    own_manifest = own_manifest || manifest["name"] == "cubist-decode";
  }
  CHECK(own_manifest);

  CHECK(text.exit_code == 2);
  CHECK_THAT(text.out,
             Contains("ERROR     CUBIST_FOREIGN_STORE: found 'maybe', which is no policy; "
                      "allowed: allow, warn, refuse; next: correct"));
  CHECK_THAT(text.err, Contains("cubist: error: ") && Contains("setting(s) are wrong"));
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
