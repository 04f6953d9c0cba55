// What each revision chooses where no recording of the published runtime says it: fallbacks, and
// the rules of our own kernels. A change of rules for a revision that manifests name already shows
// here as a difference; it needs a new revision instead. CUBIST_UPDATE_GOLDEN=1 writes the tables
// anew, to be reviewed as a diff.

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "codec/plan_json.h"
#include "codec/problem_json.h"
#include "recordings.h"
#include "selector/select.h"
#include "support/catch.h"

namespace cubist {
namespace {

DeviceProfile device(std::uint32_t sm, std::int32_t num_sms) {
  DeviceProfile profile;
  profile.sm = sm;
  profile.num_sms = num_sms;
  return profile;
}

std::string describe(const LaunchPlan& plan) {
  const bool falls_back = plan.fallback != FallbackReason::kNone;
  return fmt::format("{}\t{}x{}x{}\t{}\t{}", plan.record->name, plan.grid[0], plan.grid[1],
                     plan.grid[2], plan.cluster[0], falls_back ? to_string(plan.fallback) : "-");
}

std::string id_of(const std::string& line) {
  const std::size_t at = line.find("\"id\":\"");
  REQUIRE(at != std::string::npos);
  return line.substr(at + 6, line.find('"', at + 6) - at - 6);
}

/// Of the recorded problems, those that the published rules leave without a kernel.
std::string fallbacks_of(const std::string& release) {
  const test::OpenedManifest opened = test::open_shipped("flashinfer-" + release);
  std::string table = "id\tkernel\tgrid\tcluster\tfallback\n";
  for (const std::string& line : test::read_recordings("selection-" + release + ".jsonl.gz")) {
    ProblemLine problem;
    REQUIRE(read_problem(line, device(100, 148), problem).has_value());
    const auto selection =
        selector::select(opened.table, problem.value.problem, problem.value.device);
    if (!selection || selection->best().fallback == FallbackReason::kNone) continue;
    table += id_of(line) + '\t' + describe(selection->best()) + '\n';
  }
  return table;
}

std::string own_choices() {
  const test::OpenedManifest opened = test::open_shipped("cubist-decode");
  std::string table =
      "heads_per_kv\tmax_q_len\tbatch\tmax_kv_len\tkernel\tgrid\tcluster\tfallback\n";
  AttentionProblem problem;
  problem.num_kv_heads = 2;
  problem.page_size = 16;
  for (const int hpk : {1, 5, 8, 16, 64}) {
    for (const int q_len : {1, 4}) {
      for (const int batch : {1, 32, 256}) {
        for (const int kv_len : {128, 8192, 131072}) {
          problem.num_q_heads = 2 * hpk;
          problem.max_q_len = q_len;
          problem.batch = batch;
          problem.max_kv_len = kv_len;
          const auto selection = selector::select(opened.table, problem, device(90, 132));
          REQUIRE(selection.has_value());
          table += fmt::format("{}\t{}\t{}\t{}\t{}\n", hpk, q_len, batch, kv_len,
                               describe(selection->best()));
        }
      }
    }
  }
  return table;
}

void hold_against(const std::string& revision, const std::string& table) {
  const std::string path = CUBIST_SOURCE_DIR "/tests/golden/select/choices-" + revision + ".tsv";
  if (std::getenv("CUBIST_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << table;
  std::ifstream file(path);
  REQUIRE(file.good());
  std::istringstream ours(table);
  std::string expected;
  std::string line;
  int number = 0;
  while (std::getline(file, expected)) {
    INFO(path << ", line " << ++number);
    REQUIRE(std::getline(ours, line));
    REQUIRE(line == expected);
  }
  CHECK_FALSE(std::getline(ours, line));
  CHECK(number > 15);
}

}  // namespace

TEST_CASE("fallbacks of trtllm-gen-fmha-0.6.13 stay what they are") {
  hold_against("trtllm-gen-fmha-0.6.13", fallbacks_of("0.6.13"));
}

TEST_CASE("fallbacks of trtllm-gen-fmha-0.6.8 stay what they are") {
  hold_against("trtllm-gen-fmha-0.6.8", fallbacks_of("0.6.8"));
}

TEST_CASE("choices of cubist-decode-1 stay what they are") {
  hold_against("cubist-decode-1", own_choices());
}

}  // namespace cubist
