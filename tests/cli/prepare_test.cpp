// `cubist prepare` against the driver's stand-in, and without one.

#include <nlohmann/json.hpp>

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

using Fixture = test::StandInGpu;

TEST_CASE("the kernels of a working set are prepared, and no others") {
  const Fixture fixture;
  const Scratch folder;
  const std::string set = folder / "set.json";
  const ToolRun made = run_tool({"working-set",
                                 "--manifest",
                                 "cubist-decode",
                                 "--num-q-heads",
                                 "64",
                                 "--num-kv-heads",
                                 "8",
                                 "--head-dim",
                                 "128",
                                 "--device",
                                 "h200",
                                 "--batch",
                                 "1..4",
                                 "--max-q-len",
                                 "1..2",
                                 "--max-kv-len",
                                 "..2048",
                                 "--page-size",
                                 "32",
                                 "-o",
                                 set});
  CAPTURE(made.out, made.err);
  REQUIRE(made.exit_code == 0);
  const auto kernels = nlohmann::json::parse(test::file_text(set))["kernels"];
  REQUIRE(!kernels.empty());

  const ToolRun run = run_tool({"prepare", "--working-set", set, "--json"});
  const nlohmann::json report = json_of(run);
  CHECK(run.exit_code == 0);
  CHECK(report["loaded"] == kernels.size());
  CHECK(report["failed"] == 0);
  REQUIRE(report["kernels"].size() == kernels.size());
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    CHECK(report["kernels"][i]["sha256"] == kernels[i]["sha256"]);
    CHECK(report["kernels"][i]["milliseconds"] > 0.0);
  }
  CHECK(report["milliseconds"] > 0.0);
}

TEST_CASE("without a set every kernel that the GPU can run is prepared, for people too") {
  const Fixture fixture;
  const ToolRun run = run_tool({"prepare", "--manifest", "cubist-decode", "--threads", "2"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("loaded, ") && Contains(" ms in all"));
}

TEST_CASE("kernels by name; one that does not exist is not found") {
  const Fixture fixture;
  const ToolRun run =
      run_tool({"prepare", "--manifest", "cubist-aux", "--kernel", "cubist_lse_sm90a", "--json"});
  CHECK(json_of(run)["loaded"] == 1);
  const ToolRun missing = run_tool({"prepare", "--manifest", "cubist-aux", "--kernel", "no_such"});
  CHECK(missing.exit_code == 2);
  CHECK_THAT(missing.err, Contains("'no_such'"));
}

TEST_CASE("without a GPU, or with one of another kind, the exit code is 9 and the error says why") {
  const Fixture fixture;
  {
    const Environment none(Environment::Values{{"CUBIST_LIBCUDA", "/no/libcuda.so"}});
    const ToolRun run = run_tool({"prepare", "--manifest", "cubist-decode"});
    CHECK(run.exit_code == 9);
    CHECK_THAT(run.err, Contains("/no/libcuda.so") && Contains("NVIDIA driver"));
    const ToolRun json = run_tool({"prepare", "--manifest", "cubist-decode", "--json"});
    CHECK(json.exit_code == 9);
    CHECK(json_of(json)["error"]["code"] == "driver_unavailable");
  }
  {
    const Environment old(Environment::Values{{"CUBIST_FAKE_CUDA_VERSION", "12080"}});
    const ToolRun run =
        run_tool({"prepare", "--manifest", "cubist-aux", "--kernel", "cubist_lse_sm90a", "--json"});
    CHECK(run.exit_code == 9);
    CHECK(json_of(run)["kernels"][0]["error"]["code"] == "device_mismatch");
    CHECK_THAT(run.err, Contains("needs a driver for CUDA 13.0"));
  }
  const ToolRun other =
      run_tool({"prepare", "--manifest", "cubist-aux", "--kernel", "cubist_lse_sm100f", "--json"});
  CHECK(other.exit_code == 9);
  CHECK(json_of(other)["failed"] == 1);
  CHECK(json_of(other)["kernels"][0]["error"]["code"] == "device_mismatch");
}

TEST_CASE("a driver that cannot load a kernel: each one's error, exit code 9") {
  const Fixture fixture;
  const Environment failing(Environment::Values{{"CUBIST_FAKE_CUDA_FAIL", "cuModuleLoadData=2"}});
  const ToolRun run = run_tool({"prepare", "--manifest", "cubist-aux", "--json"});
  CHECK(run.exit_code == 9);
  CHECK(json_of(run)["loaded"] == 0);
  CHECK_THAT(run.err, Contains("CUDA_ERROR_OUT_OF_MEMORY"));
}

TEST_CASE("neither a manifest nor a set is a usage error") {
  const Fixture fixture;
  const ToolRun run = run_tool({"prepare"});
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("--manifest"));
}

}  // namespace
}  // namespace cubist
