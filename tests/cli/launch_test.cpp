// `cubist launch` against the driver's stand-in, which computes decode attention on the CPU.

#include <filesystem>

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

struct Fixture : test::StandInGpu {
  /// Small enough for a CPU: 2 sequences, 2 new tokens, 300 keys.
  static ToolRun launch(std::vector<std::string> flags) {
    std::vector<std::string> arguments = {
        "launch", "--num-q-heads", "8",  "--num-kv-heads", "2", "--head-dim",
        "64",     "--batch",       "2",  "--max-q-len",    "2", "--max-kv-len",
        "300",    "--page-size",   "16", "--repeat",       "2"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return run_tool(arguments);
  }
};

std::size_t stored_cubins(const std::string& store) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(store)) {
    count += entry.path().extension() == ".cubin" ? 1 : 0;
  }
  return count;
}

TEST_CASE("a launch goes from manifest to a result that float64 confirms") {
  const Fixture fixture;
  const ToolRun run = fixture.launch({});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("gpu       0: Fake sm_90") || Contains("gpu       0: Fake H200"));
  CHECK_THAT(run.out, Contains("kernel    cubist_decode_q_bf16_kv_bf16_o_bf16_h64_"));
  CHECK_THAT(run.out, Contains("compared  2048 of 2048 outputs"));
  CHECK_THAT(run.out, Contains("us a launch (2 in a row)"));
  CHECK(stored_cubins(fixture.store.path()) == 1);
}

TEST_CASE("a persistent kernel is launched with its tensor maps and workspace") {
  const Fixture fixture;
  const ToolRun run = fixture.launch({"--num-q-heads", "8", "--num-kv-heads", "4", "--head-dim",
                                      "64", "--batch", "8", "--max-kv-len", "2000"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("_stream_sm90a"));
  CHECK_THAT(run.out, Contains("outputs with float64"));
}

TEST_CASE("an e4m3 cache goes to a persistent kernel, whose maps are of bytes") {
  const Fixture fixture;
  for (const char* head_dim : {"64", "128"}) {
    const ToolRun run = fixture.launch({"--num-q-heads", "8", "--num-kv-heads", "4", "--head-dim",
                                        head_dim, "--batch", "8", "--max-kv-len", "2000",
                                        "--page-size", "64", "--dtype-kv", "e4m3"});
    CAPTURE(run.out, run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.out, Contains("_kv_e4m3_") && Contains("_stream_sm90a"));
    CHECK_THAT(run.out, Contains("outputs with float64"));
  }
}

TEST_CASE("an MLA launch has one copy of the cache") {
  const Fixture fixture;
  const ToolRun run = fixture.launch(
      {"--num-kv-heads", "1", "--head-dim-qk", "576", "--head-dim-vo", "512", "--is-mla", "--lse"});
  CAPTURE(run.out, run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("h576v512"));
}

TEST_CASE("every optional input takes part") {
  const Fixture fixture;
  for (const std::vector<std::string>& flags : std::vector<std::vector<std::string>>{
           {"--sinks", "--lse", "--varlen-q"},
           {"--dtype-kv", "e4m3", "--kv-layout", "NHD"},
           {"--dtype-q", "fp16", "--dtype-kv", "fp16", "--dtype-o", "fp16", "--window-left", "20"},
           {"--kv-combined", "--bmm1-scale", "0.2", "--bmm2-scale", "1.5"},
           {"--bmm1-scale", "ptr", "--bmm2-scale", "ptr"},
           {"--max-kv-len", "2000", "--batch", "1"}}) {
    std::vector<std::string> with_json = flags;
    with_json.emplace_back("--json");
    const ToolRun run = fixture.launch(with_json);
    CAPTURE(run.out, run.err, flags);
    REQUIRE(run.exit_code == 0);
    const nlohmann::json launch = json_of(run)["launch"];
    CHECK(launch["check"]["worst_of_tolerance"] <= 1.0);
    CHECK(launch["check"]["compared"] == launch["check"]["total"]);
    CHECK(launch["repeatable"] == true);
    CHECK(launch["counters_zero"] == true);
  }
}

TEST_CASE("a dry run prints the plan without a GPU and fetches nothing") {
  const Fixture fixture;
  const Environment none(Environment::Values{{"CUBIST_LIBCUDA", "/no/libcuda.so"}});
  const ToolRun run = fixture.launch({"--dry-run", "--device", "h200"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("kernel    cubist_decode_"));
  CHECK(stored_cubins(fixture.store.path()) == 0);
  CHECK(json_of(fixture.launch({"--dry-run", "--device", "h200", "--json"}))["ok"] == true);
}

TEST_CASE("a dry run without a device plans for the GPU that is there") {
  const Fixture fixture;
  CHECK(fixture.launch({"--dry-run"}).exit_code == 0);
}

TEST_CASE("without a driver, a device, or a GPU that is served the exit code is 9") {
  const Fixture fixture;
  {
    const Environment none(Environment::Values{{"CUBIST_LIBCUDA", "/no/libcuda.so"}});
    const ToolRun run = fixture.launch({});
    CHECK(run.exit_code == 9);
    CHECK_THAT(run.err, Contains("no CUDA driver library could be opened; tried '/no/libcuda.so'"));
  }
  {
    const Environment none(Environment::Values{{"CUBIST_FAKE_CUDA_DEVICES", "0"}});
    const ToolRun run = fixture.launch({});
    CHECK(run.exit_code == 9);
    CHECK_THAT(run.err, Contains("CUDA_VISIBLE_DEVICES"));
  }
  {
    const Environment old(Environment::Values{{"CUBIST_FAKE_CUDA_VERSION", "12090"}});
    const ToolRun run = fixture.launch({});
    CHECK(run.exit_code == 9);
    CHECK_THAT(run.err, Contains("needs a driver for CUDA 13.0 or later, but this one supports "
                                 "CUDA 12.9; update the NVIDIA driver"));
  }
  const Environment other(Environment::Values{{"CUBIST_FAKE_CUDA_DEVICES", "89"}});
  const ToolRun run = fixture.launch({});
  CHECK(run.exit_code == 9);
  CHECK_THAT(run.err, Contains("is sm_89") && Contains("sm_90a"));
}

TEST_CASE("a GPU that does not exist is a usage error with the count") {
  const Fixture fixture;
  const ToolRun run = fixture.launch({"--gpu", "3"});
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("device 3 does not exist: the driver shows 1 device(s)"));
}

TEST_CASE("a preset goes with a dry run only") {
  const Fixture fixture;
  const ToolRun run = fixture.launch({"--device", "h200"});
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, Contains("--dry-run") && Contains("--gpu"));
}

TEST_CASE("a problem that no kernel serves is exit code 3, and the nearest kernels are named") {
  const Fixture fixture;
  const ToolRun run = fixture.launch({"--head-dim", "96"});
  CHECK(run.exit_code == 3);
  CHECK_THAT(run.err, Contains("\n  nearest: cubist_decode_q_bf16_kv_bf16_o_bf16_h64_") &&
                          Contains("head_dim_qk/head_dim_vo: asked for 96/96, it has 64/64"));
}

TEST_CASE("a failing driver call is exit code 9 with its name and number") {
  const Fixture fixture;
  const Environment fail(Environment::Values{{"CUBIST_FAKE_CUDA_FAIL", "cuLaunchKernelEx=700"}});
  const ToolRun run = fixture.launch({});
  CHECK(run.exit_code == 9);
  CHECK_THAT(run.err, Contains("cuLaunchKernelEx failed") && Contains("(700)"));
  const ToolRun json = fixture.launch({"--json"});
  CHECK(json_of(json)["error"]["code"] == "driver_error");
}

TEST_CASE("the help teaches") {
  const ToolRun run = run_tool({"launch", "--help"});
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, Contains("Examples:") && Contains("--dry-run") && Contains("Exit code 9"));
}

}  // namespace
}  // namespace cubist
