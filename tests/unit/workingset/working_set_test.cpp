#include "workingset/working_set.h"

#include <set>
#include <string>

#include "support/catch.h"
#include "support/published.h"
#include "workingset/check.h"
#include "workingset/classes.h"

using namespace cubist;
using namespace cubist::workingset;

namespace {

Query query_for(const std::string& model, const ClassOptions& options, Range batch, Range max_q_len,
                Range max_kv_len, const std::string& device = "b200") {
  Query query;
  query.device = test::shipped_presets().find_device(device).value().profile;
  auto classes = make_classes(test::shipped_presets().find_model(model).value(), options);
  if (!classes) FAIL(classes.error().message());
  query.classes = std::move(*classes);
  query.batch = {batch};
  query.max_q_len = {max_q_len};
  query.max_kv_len = {max_kv_len};
  return query;
}

ClassOptions options_for(Dtype q, Dtype o, std::int32_t page_size) {
  ClassOptions options;
  options.dtype_q = {q};
  options.dtype_o = {o};
  options.page_size = {page_size};
  return options;
}

WorkingSet find(const test::Published& published, const Query& query) {
  auto set = find_working_set(published.table, query);
  if (!set) FAIL(set.error().message());
  return std::move(*set);
}

std::set<const KernelRecord*> records_of(const WorkingSet& set) {
  std::set<const KernelRecord*> records;
  for (const Member& member : set.members) records.insert(member.record);
  return records;
}

/// Every problem of the range, one by one, with three answers about clusters.
std::set<const KernelRecord*> walk(const test::Published& published, const Query& query,
                                   double* refused) {
  std::set<const KernelRecord*> records;
  selector::SelectOptions options;
  options.strict = query.strict;
  Selection selection;
  for (const ProblemClass& cls : query.classes) {
    AttentionProblem p = cls.problem;
    for (p.batch = query.batch[0].first; p.batch <= query.batch[0].last; ++p.batch) {
      for (p.max_q_len = query.max_q_len[0].first; p.max_q_len <= query.max_q_len[0].last;
           ++p.max_q_len) {
        for (p.max_kv_len = query.max_kv_len[0].first; p.max_kv_len <= query.max_kv_len[0].last;
             ++p.max_kv_len) {
          for (const std::int32_t answer : {-1, 0, 10000}) {
            DeviceProfile device = query.device;
            device.max_active_clusters.fill(answer);
            if (!selector::select_into(published.table, p, device, options, selection)) {
              if (answer == -1) *refused += 1;
              break;
            }
            for (std::uint32_t i = 0; i < selection.num_plans; ++i) {
              records.insert(selection.plans[i].record);
            }
          }
        }
      }
    }
  }
  return records;
}

/// The set found by proof is the set found by walking, and every gap is a refusal.
void check_against_walk(const test::Published& published, const Query& query) {
  const WorkingSet set = find(published, query);
  double refused = 0;
  const auto walked = walk(published, query, &refused);
  CHECK(records_of(set) == walked);
  double gaps = 0;
  for (const Gap& gap : set.gaps) gaps += gap.num_problems;
  CHECK(gaps == refused);
  for (const Member& member : set.members) {
    CHECK(witness_holds(published.table, query, member.witness, *member.record));
  }
}

void check_at_random(const test::Published& published, const Query& query) {
  const WorkingSet set = find(published, query);
  const CheckResult result = check_working_set(published.table, query, set, 20000, 7);
  CHECK(result.problems == 20000);
  CHECK_FALSE(result.outside.has_value());
  if (result.outside) UNSCOPED_INFO(result.outside_record->name);
}

}  // namespace

TEST_CASE("a proved set is what walking over every problem finds") {
  const auto bf16 = options_for(Dtype::kBf16, Dtype::kBf16, 32);
  const auto e4m3 = options_for(Dtype::kE4m3, Dtype::kBf16, 64);
  const auto& published = test::flashinfer_0_6_13();
  check_against_walk(published, query_for("gpt-oss-120b", e4m3, {1, 20}, {1, 5}, {1, 700}));
  check_against_walk(published, query_for("llama-3.1-8b", bf16, {1, 6}, {1, 9}, {300, 1400}));
  check_against_walk(published, query_for("deepseek-v3", bf16, {1, 40}, {1, 3}, {1, 400}));
  check_against_walk(published, query_for("kimi-k2", e4m3, {1, 10}, {1, 2}, {900, 1800}));
  check_against_walk(published, query_for("deepseek-v3.2", bf16, {1, 12}, {1, 2}, {1, 2500}));
}

TEST_CASE("a proved set is what walking finds where the rules find nothing and others serve") {
  const auto bf16 = options_for(Dtype::kBf16, Dtype::kBf16, 32);
  // Gemma 4's full layers: 512 columns and several tokens.
  Query query = query_for("gemma-4-31b", bf16, {1, 12}, {1, 6}, {1, 800});
  check_against_walk(test::flashinfer_0_6_13(), query);
  query.strict = true;
  check_against_walk(test::flashinfer_0_6_13(), query);
}

TEST_CASE("a proved set is what walking finds under the older rules and in prefill") {
  const auto bf16 = options_for(Dtype::kBf16, Dtype::kBf16, 64);
  check_against_walk(test::flashinfer_0_6_8(),
                     query_for("deepseek-v3", bf16, {1, 20}, {1, 3}, {1, 600}));
  check_against_walk(test::flashinfer_0_6_8(),
                     query_for("gemma-3-27b", bf16, {1, 8}, {1, 4}, {900, 1400}));
  ClassOptions context = bf16;
  context.phases = {Phase::kContext, Phase::kRagged};
  check_against_walk(test::flashinfer_0_6_13(),
                     query_for("gpt-oss-20b", context, {1, 6}, {1, 40}, {100, 300}));
}

TEST_CASE("nothing drawn at random from a wide range is outside the set") {
  const auto& published = test::flashinfer_0_6_13();
  for (const char* model : {"gpt-oss-120b", "llama-3.1-70b", "gemma-3-27b", "phi-4-mini",
                            "qwen3-235b-a22b", "deepseek-v3", "kimi-k2"}) {
    INFO(model);
    check_at_random(published, query_for(model, options_for(Dtype::kE4m3, Dtype::kBf16, 32),
                                         {1, 512}, {1, 16}, {1, 131072}, "gb200"));
    check_at_random(published, query_for(model, options_for(Dtype::kBf16, Dtype::kBf16, 64),
                                         {1, 300}, {1, 4}, {1, 40000}, "b300"));
  }
}

TEST_CASE("both branches of a cluster precondition are in the set") {
  const auto& published = test::flashinfer_0_6_13();
  const WorkingSet set =
      find(published, query_for("gpt-oss-120b", options_for(Dtype::kE4m3, Dtype::kBf16, 32), {4, 4},
                                {1, 1}, {1025, 1025}));
  bool with_clusters = false;
  bool without = false;
  for (const Member& member : set.members) {
    const MultiCtasKvMode mode = member.record->traits.multi_ctas_kv_mode;
    with_clusters = with_clusters || mode == MultiCtasKvMode::kClusterSharedMemory;
    without = without || mode == MultiCtasKvMode::kGlobalMemory;
  }
  CHECK(with_clusters);
  CHECK(without);
}

TEST_CASE("the example of a deployment is a handful of kernels, whatever its devices say") {
  const auto& published = test::flashinfer_0_6_13();
  const WorkingSet set =
      find(published, query_for("gpt-oss-120b", options_for(Dtype::kE4m3, Dtype::kBf16, 32),
                                {1, 256}, {1, 8}, {1, 131072}));
  CHECK(set.members.size() == 15);
  CHECK(set.gaps.empty());
  CHECK(set.size_bytes() < 2'000'000);
  // A profile that knows its answers changes nothing: the set is for any device of this kind.
  Query knowing = query_for("gpt-oss-120b", options_for(Dtype::kE4m3, Dtype::kBf16, 32), {1, 256},
                            {1, 8}, {1, 131072});
  knowing.device.max_active_clusters.fill(0);
  CHECK(records_of(find(published, knowing)) == records_of(set));
}

TEST_CASE("where no kernel serves there is a gap with an example") {
  const auto& published = test::flashinfer_0_6_13();
  // No kernel is built for pages of 8.
  const WorkingSet set =
      find(published, query_for("llama-3.1-8b", options_for(Dtype::kBf16, Dtype::kBf16, 8), {1, 4},
                                {1, 2}, {1, 100}));
  CHECK(set.members.empty());
  REQUIRE_FALSE(set.gaps.empty());
  double problems = 0;
  for (const Gap& gap : set.gaps) problems += gap.num_problems;
  CHECK(problems == 800);
  CHECK(set.gaps[0].message.find("no kernel") != std::string::npos);
}

TEST_CASE("queries that hold problems no call can have are refused by field") {
  const auto& table = test::flashinfer_0_6_13().table;
  const auto bf16 = options_for(Dtype::kBf16, Dtype::kBf16, 64);
  const auto error_of = [&](const Query& query) {
    const auto set = find_working_set(table, query);
    return set ? "" : set.error().message();
  };
  Query query = query_for("llama-3.1-8b", bf16, {1, 4}, {1, 2}, {1, 100});
  CHECK(error_of(query).empty());
  query.batch = {};
  CHECK(error_of(query).find("batch has no range") == 0);
  query.batch = {{5, 3}};
  CHECK(error_of(query).find("batch has the range 5..3") == 0);
  query.batch = {{1, 70000}};
  CHECK(error_of(query).find("batch is 70000") != std::string::npos);
  query.batch = {{1, 60000}};
  query.max_q_len = {{1, 100000}};
  CHECK(error_of(query).find("batch * max_q_len") != std::string::npos);
  query = query_for("llama-3.1-8b", bf16, {1, 4}, {1, 2}, {1, 100});
  query.classes[0].problem.custom_mask = true;
  CHECK(error_of(query).find("custom_mask") != std::string::npos);
  query.classes.clear();
  CHECK(error_of(query).find("no kinds of problems") != std::string::npos);
}

TEST_CASE("a set under override rules is what walking under them finds") {
  auto file = overrides::parse_rules(
      R"({"schema":"cubist.overrides","schema_version":1,"rules":[
          {"name":"small","when":{"batch":{"min":3,"max":9},"max_kv_len":{"max":300}},
           "force":{"tile_q":[32,64]}},
          {"name":"clusters","when":{"max_q_len":{"min":2}},
           "forbid":{"multi_ctas_kv_mode":"cga_smem"}}]})",
      "rules.json");
  REQUIRE(file);
  const auto& published = test::flashinfer_0_6_13();
  auto bound = overrides::Overrides::bind(std::move(*file), published.packs);
  REQUIRE(bound);
  Query query = query_for("gpt-oss-120b", options_for(Dtype::kE4m3, Dtype::kBf16, 32), {1, 12},
                          {1, 3}, {1, 600});
  query.overrides = &*bound;
  const WorkingSet set = find(published, query);

  std::set<const KernelRecord*> walked;
  for (const ProblemClass& cls : query.classes) {
    AttentionProblem p = cls.problem;
    for (p.batch = 1; p.batch <= 12; ++p.batch) {
      for (p.max_q_len = 1; p.max_q_len <= 3; ++p.max_q_len) {
        for (p.max_kv_len = 1; p.max_kv_len <= 600; ++p.max_kv_len) {
          for (const std::int32_t answer : {-1, 0, 10000}) {
            DeviceProfile device = query.device;
            device.max_active_clusters.fill(answer);
            const auto selection = bound->select(p, device);
            REQUIRE(selection);
            for (std::uint32_t i = 0; i < selection->num_plans; ++i) {
              walked.insert(selection->plans[i].record);
            }
          }
        }
      }
    }
  }
  CHECK(records_of(set) == walked);
  const CheckResult checked = check_working_set(published.table, query, set, 20000, 3);
  CHECK_FALSE(checked.outside.has_value());
}
