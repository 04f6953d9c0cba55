#include "workingset/compare.h"

#include <map>

#include "support/catch.h"
#include "support/published.h"
#include "workingset/classes.h"

using namespace cubist;
using namespace cubist::workingset;

namespace {

Side side(const test::Published& published, const std::string& model, const std::string& device,
          std::int32_t page_size = 64) {
  ClassOptions options;
  options.page_size = {page_size};
  Side side;
  side.table = &published.table;
  side.query.device = test::shipped_presets().find_device(device).value().profile;
  side.query.classes =
      make_classes(test::shipped_presets().find_model(model).value(), options).value();
  side.query.batch = {{1, 12}};
  side.query.max_q_len = {{1, 3}};
  side.query.max_kv_len = {{1, 700}};
  return side;
}

const KernelRecord* chosen(const Side& side, const AttentionProblem& problem) {
  DeviceProfile device = side.query.device;
  device.max_active_clusters.fill(-1);
  const auto selection = selector::select(*side.table, problem, device);
  return selection ? selection->best().record : nullptr;
}

/// Counts by walking over every problem.
void check_against_walk(const Side& before, const Side& after) {
  const auto comparison = compare(before, after);
  if (!comparison) FAIL(comparison.error().message());
  std::map<std::pair<const KernelRecord*, const KernelRecord*>, double> walked;
  double refused = 0;
  for (const ProblemClass& cls : before.query.classes) {
    AttentionProblem p = cls.problem;
    for (p.batch = 1; p.batch <= before.query.batch[0].last; ++p.batch) {
      for (p.max_q_len = 1; p.max_q_len <= before.query.max_q_len[0].last; ++p.max_q_len) {
        for (p.max_kv_len = 1; p.max_kv_len <= before.query.max_kv_len[0].last; ++p.max_kv_len) {
          const KernelRecord* a = chosen(before, p);
          const KernelRecord* b = chosen(after, p);
          if (a == nullptr && b == nullptr) {
            refused += 1;
          } else {
            walked[{a, b}] += 1;
          }
        }
      }
    }
  }
  std::map<std::pair<const KernelRecord*, const KernelRecord*>, double> found;
  for (const Change& change : comparison->changes) {
    found[{change.before, change.after}] += change.num_problems;
    CHECK(chosen(before, change.example) == change.before);
    CHECK(chosen(after, change.example) == change.after);
  }
  CHECK(found == walked);
  CHECK(comparison->num_refused == refused);
}

}  // namespace

TEST_CASE("two releases are compared problem by problem") {
  const auto& older = test::flashinfer_0_6_8();
  const auto& newer = test::flashinfer_0_6_13();
  check_against_walk(side(older, "deepseek-v3", "b200"), side(newer, "deepseek-v3", "b200"));
  check_against_walk(side(older, "gpt-oss-120b", "b200"), side(newer, "gpt-oss-120b", "b200"));
}

TEST_CASE("what only one release has appears and vanishes") {
  const auto& older = test::flashinfer_0_6_8();
  const auto& newer = test::flashinfer_0_6_13();
  // Pages of 128 and more came after 0.6.8.
  const Side before = side(older, "llama-3.1-8b", "b200", 128);
  const Side after = side(newer, "llama-3.1-8b", "b200", 128);
  const auto up = compare(before, after);
  REQUIRE(up);
  CHECK(up->count(ChangeKind::kAppears) == up->num_problems);
  const auto down = compare(after, before);
  REQUIRE(down);
  CHECK(down->count(ChangeKind::kVanishes) == down->num_problems);
}

TEST_CASE("a manifest compared with itself is the same, with another device it may change") {
  const auto& newer = test::flashinfer_0_6_13();
  const Side b200 = side(newer, "deepseek-v3", "b200");
  const auto same = compare(b200, b200);
  REQUIRE(same);
  CHECK(same->count(ChangeKind::kSame) == same->num_problems);
  check_against_walk(b200, side(newer, "deepseek-v3", "gb300"));
  Side nowhere = b200;
  nowhere.query.device.num_sms = 0;
  CHECK_FALSE(compare(b200, nowhere));
}

TEST_CASE("a changed mode is named, a rebuilt kernel is not called changed") {
  const auto comparison = compare(side(test::flashinfer_0_6_8(), "deepseek-v3", "b200"),
                                  side(test::flashinfer_0_6_13(), "deepseek-v3", "b200"));
  REQUIRE(comparison);
  CHECK(comparison->count(ChangeKind::kSame) == 0);
  CHECK(comparison->count(ChangeKind::kRebuilt) > 0);
  for (const Change& change : comparison->changes) {
    CHECK((change.kind == ChangeKind::kChanged) == !change.differences.empty());
  }
}
