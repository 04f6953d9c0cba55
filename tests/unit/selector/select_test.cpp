#include "selector/select.h"

#include <algorithm>

#include "kernels.h"
#include "support/catch.h"

namespace cubist {
namespace {

using test::TestPack;

/// 96 heads on 8, bf16, page 32: reduces through clusters on a B200.
AttentionProblem clustered() {
  AttentionProblem p;
  p.num_q_heads = 96;
  p.batch = 8;
  p.max_kv_len = 8192;
  p.page_size = 32;
  return p;
}

TestPack release() { return test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13); }

MultiCtasKvMode mode_of(const LaunchPlan& plan) { return plan.record->traits.multi_ctas_kv_mode; }

}  // namespace

TEST_CASE(
    "an unknown occupancy gives the cluster plan with its precondition, then what stands in") {
  const TestPack pack = release();
  const auto selection = selector::select(pack.table(), clustered(), test::b200());
  REQUIRE(selection.has_value());
  REQUIRE(selection->num_plans == 2);
  CHECK(mode_of(selection->plans[0]) == MultiCtasKvMode::kClusterSharedMemory);
  CHECK(selection->plans[0].min_active_clusters == 64);
  CHECK(selection->plans[0].cluster[0] == 2);
  CHECK(selection->plans[0].cluster_sched_policy == 1);
  CHECK(mode_of(selection->plans[1]) == MultiCtasKvMode::kGlobalMemory);
  CHECK(selection->plans[1].min_active_clusters == 0);
  CHECK(selection->plans[1].cluster[0] == 1);
  CHECK(selection->plans[1].fallback == FallbackReason::kNone);
}

TEST_CASE("an occupancy answer that is too small takes the sibling at once") {
  const TestPack pack = release();
  const auto table = pack.table();
  AttentionProblem problem = clustered();
  problem.max_active_clusters = 63;
  auto selection = selector::select(table, problem, test::b200());
  REQUIRE(selection.has_value());
  CHECK(selection->num_plans == 1);
  CHECK(mode_of(selection->best()) == MultiCtasKvMode::kGlobalMemory);
  problem.max_active_clusters = 64;
  selection = selector::select(table, problem, test::b200());
  CHECK(mode_of(selection->best()) == MultiCtasKvMode::kClusterSharedMemory);
}

TEST_CASE("the occupancy query is asked once, and only where nobody knows") {
  const TestPack pack = release();
  const auto table = pack.table();
  int calls = 0;
  selector::SelectOptions options;
  options.occupancy = {
      [](void* count, const LaunchPlan&) { return ++*static_cast<int*>(count), 0; }, &calls};
  auto selection = selector::select(table, clustered(), test::b200(), options);
  CHECK(calls == 1);
  CHECK(mode_of(selection->best()) == MultiCtasKvMode::kGlobalMemory);
  AttentionProblem one_wave = clustered();
  one_wave.batch = 64;
  selection = selector::select(table, one_wave, test::b200(), options);
  CHECK(calls == 1);
  CHECK(mode_of(selection->best()) == MultiCtasKvMode::kOff);
}

TEST_CASE("a missing sibling leaves strict one plan and otherwise a fallback behind it") {
  TestPack pack = release();
  std::erase_if(pack.kernels, [](const KernelRecord& r) {
    return r.traits.tile_q == 16 && r.traits.mask_type == MaskType::kCausal &&
           r.traits.multi_ctas_kv_mode == MultiCtasKvMode::kGlobalMemory;
  });
  // The first pass asks for the mode-1 kernel too, so the rules cannot even start without it.
  selector::SelectOptions strict;
  strict.strict = true;
  const auto refused = selector::select(pack.table(), clustered(), test::b200(), strict);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kUnsupported);
  CHECK(refused.error().message().find("tile_q 16") != std::string::npos);
  CHECK(refused.error().message().find("--strict") != std::string::npos);
  const auto selection = selector::select(pack.table(), clustered(), test::b200());
  REQUIRE(selection.has_value());
  CHECK(selection->best().fallback == FallbackReason::kRuleFindsNoKernel);
  CHECK(selection->plans[selection->num_plans - 1].min_active_clusters == 0);
}

TEST_CASE("packs are tried in order, and those without kernels for the device are passed over") {
  TestPack blackwell = release();
  TestPack hopper;
  hopper.family = KernelFamily::kCubistDecode;
  hopper.revision = HeuristicRevision::kCubistDecode_1;
  hopper.param_layout = ParamLayout::kCubistDecode1;
  KernelRecord own;
  own.name = "own";
  own.traits.dtype_q = own.traits.dtype_k = own.traits.dtype_v = own.traits.dtype_o = Dtype::kBf16;
  own.traits.arch = {90, SmArch::Kind::kSpecific};
  own.traits.head_dim_qk = own.traits.head_dim_vo = 128;
  own.traits.tile_q = 16;
  own.traits.tile_kv = 64;
  own.traits.threads = 128;
  own.traits.dynamic_page = true;
  own.traits.mask_type = MaskType::kCausal;
  own.traits.kernel_type = KernelType::kKeepsMmaAbGeneration;
  hopper.kernels = {own};
  const std::vector<selector::PackView> views = {blackwell.view(), hopper.view()};
  const auto table = selector::KernelTable::build(views);
  REQUIRE(table.has_value());

  const auto on_b200 = selector::select(*table, clustered(), test::b200());
  REQUIRE(on_b200.has_value());
  CHECK(on_b200->best().family == KernelFamily::kTrtllmGenFmha);
  DeviceProfile h200 = test::b200();
  h200.sm = 90;
  h200.num_sms = 132;
  const auto on_h200 = selector::select(*table, clustered(), h200);
  REQUIRE(on_h200.has_value());
  CHECK(on_h200->best().record->name == "own");
  h200.sm = 80;
  const auto nowhere = selector::select(*table, clustered(), h200);
  REQUIRE_FALSE(nowhere.has_value());
  CHECK(nowhere.error().message().find("sm 80") != std::string::npos);
}

TEST_CASE("heads of two KV groups in one CTA are refused, or another kernel is taken") {
  // 20 heads per KV head in mixed types: the rules take tile_q 16, whose CTAs would straddle
  // groups.
  AttentionProblem problem;
  problem.num_q_heads = 160;
  problem.dtype_k = problem.dtype_v = Dtype::kE4m3;
  problem.page_size = 32;
  problem.batch = 4;
  const TestPack pack = release();
  selector::SelectOptions strict;
  strict.strict = true;
  const auto refused = selector::select(pack.table(), problem, test::b200(), strict);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message().find("two KV groups") != std::string::npos);
  const auto selection = selector::select(pack.table(), problem, test::b200());
  REQUIRE(selection.has_value());
  CHECK(selection->best().fallback == FallbackReason::kRuleSplitsHeadGroups);
  CHECK(selection->best().record->traits.tile_q >= 32);
}

TEST_CASE("rows that no tensor map can box are never launched") {
  const TestPack pack = release();
  const auto table = pack.table();
  AttentionProblem problem;
  problem.phase = Phase::kContext;
  problem.num_q_heads = 64;
  problem.head_dim_qk = 80;
  problem.page_size = 32;
  CHECK(selector::select(table, problem, test::b200()).has_value());
  problem.dtype_k = problem.dtype_v = Dtype::kE4m3;  // 80 bytes
  const auto selection = selector::select(table, problem, test::b200());
  REQUIRE_FALSE(selection.has_value());
  CHECK(selection.error().message().find("wrong results") != std::string::npos);
}

TEST_CASE("what an entry point refuses is refused with and without strict") {
  const TestPack pack = release();
  const auto table = pack.table();
  struct Case {
    const char* phrase;
    void (*change)(AttentionProblem&);
  };
  const std::vector<Case> cases = {
      {"dtype_q is fp32", [](AttentionProblem& p) { p.dtype_q = Dtype::kFp32; }},
      {"dtype_k is e5m2", [](AttentionProblem& p) { p.dtype_k = Dtype::kE5m2; }},
      {"dtype_v is int8", [](AttentionProblem& p) { p.dtype_v = Dtype::kInt8; }},
      {"dtype_o is fp32", [](AttentionProblem& p) { p.dtype_o = Dtype::kFp32; }},
      {"head_dim_qk is 192", [](AttentionProblem& p) { p.head_dim_qk = 192, p.head_dim_vo = 128; }},
      {"take a top-k", [](AttentionProblem& p) { p.sparse_mla_topk = 64; }},
      {"workspace_size is 4194304", [](AttentionProblem& p) { p.workspace_size = 4194304; }},
      {"a window is causal",
       [](AttentionProblem& p) {
         p.phase = Phase::kContext, p.causal = false, p.window_left = 127;
       }},
  };
  for (const Case& entry : cases) {
    for (const bool strict : {false, true}) {
      AttentionProblem problem = clustered();
      entry.change(problem);
      selector::SelectOptions options;
      options.strict = strict;
      const auto selection = selector::select(table, problem, test::b200(), options);
      INFO(entry.phrase);
      REQUIRE_FALSE(selection.has_value());
      INFO(selection.error().message());
      CHECK(selection.error().message().find(entry.phrase) != std::string::npos);
    }
  }
}

TEST_CASE("the KV64 switch changes MLA alone, and only where SMs are left over") {
  TestPack pack = release();
  std::vector<KernelRecord> kv64;
  for (KernelRecord record : pack.kernels) {
    if (record.traits.head_dim_qk != 576) continue;
    record.traits.tile_kv = 64;
    record.name += "_kv64";
    kv64.push_back(record);
  }
  pack.kernels.insert(pack.kernels.end(), kv64.begin(), kv64.end());
  const auto table = pack.table();
  AttentionProblem problem;
  problem.num_q_heads = 64;
  problem.num_kv_heads = 1;
  problem.head_dim_qk = 576;
  problem.head_dim_vo = 512;
  problem.page_size = 32;
  problem.batch = 4;
  problem.max_kv_len = 8192;
  selector::SelectOptions options;
  CHECK(selector::select(table, problem, test::b200())->best().record->traits.tile_kv == 128);
  options.rules.enable_tile_kv64 = true;
  const auto selection = selector::select(table, problem, test::b200(), options);
  REQUIRE(selection.has_value());
  CHECK(
      selector::select(table, clustered(), test::b200(), options)->best().record->traits.tile_kv ==
      128);
}

TEST_CASE("chunked attention takes a sliding_or_chunked kernel and splits over one chunk") {
  const TestPack pack = release();
  AttentionProblem problem = clustered();
  problem.chunk_size = 1024;
  const auto selection = selector::select(pack.table(), problem, test::b200());
  REQUIRE(selection.has_value());
  CHECK(selection->best().record->traits.mask_type == MaskType::kSlidingOrChunked);
  const std::int32_t step = selection->best().record->traits.step_kv;
  CHECK(selection->best().num_ctas_kv <= (1024 + 2 * step - 1) / (2 * step));
}

}  // namespace cubist
