#include <cstdio>
#include <cstdlib>

#include "support/catch.h"
#include "support/scratch.h"
#include "support/tool.h"

using Catch::Contains;
using cubist::test::run_tool;
using cubist::test::Scratch;

namespace {

constexpr int kSkipped = 77;  // what ctest shows as skipped, not as passed

std::uint64_t number_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  REQUIRE(at != std::string::npos);
  return std::stoull(text.substr(at + key.size()));
}

}  // namespace

// A kernel of those that serve GPT-OSS decode (head_dim 64, bf16, pages of 32 tokens) on a B200.
TEST_CASE("one kernel of the published wheel costs a few requests and a few megabytes") {
  const char* kernel =
      "fmhaSm100fKernel_QkvBfloat16OBfloat16H64PagedKvCausalP32MultiCtasKvVarSeqQ16Kv128"
      "StaticSwapsAbForGen";
  const Scratch scratch;
  const std::vector<std::string> fetch{"fetch",
                                       "-m",
                                       CUBIST_SOURCE_DIR "/manifests/flashinfer-0.6.13.json",
                                       "--store",
                                       scratch / "store",
                                       "--json",
                                       "--kernel",
                                       kernel};
  const auto run = run_tool(fetch);
  if (run.exit_code == 5) {
    std::fprintf(stderr, "skipped: the package index cannot be reached from here:\n%s",
                 run.err.c_str());
    std::exit(kSkipped);
  }
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(number_after(run.out, "\"requests\": ") <= 6);
  CHECK(number_after(run.out, "\"received_bytes\": ") < 6'000'000);
  const auto verified = run_tool({"verify", "--store", scratch / "store"});
  CHECK(verified.exit_code == 0);
  CHECK_THAT(verified.out, Contains("1 entries hashed"));
}
