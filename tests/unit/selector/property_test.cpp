#include <algorithm>
#include <iostream>

#include "brute_force.h"
#include "kernels.h"
#include "selector/select.h"
#include "support/catch.h"

namespace cubist {
namespace {

using test::TestPack;

/// Problems that the release's entry points refuse whatever kernels there are.
bool passes_entry(const AttentionProblem& problem, const DeviceProfile& device,
                  HeuristicRevision revision) {
  selector::Request request;
  return selector::prepare_request(problem, device, request).has_value() &&
         selector::check_entry(revision, request).has_value();
}

void check_plan(const LaunchPlan& plan, const TestPack& pack, const AttentionProblem& problem,
                const DeviceProfile& device) {
  REQUIRE(plan.record != nullptr);
  REQUIRE(test::serves(plan.record->traits, pack.revision, problem, device, true));
  for (const std::uint32_t extent : plan.grid) REQUIRE(extent >= 1);
  REQUIRE(plan.num_ctas_q >= 1);
  REQUIRE(plan.num_ctas_kv >= 1);
  REQUIRE(plan.num_tokens_per_cta_q >= 1);
  REQUIRE(plan.num_heads_per_cta >= 1);
  REQUIRE(plan.grid[0] % plan.cluster[0] == 0);
}

void check_selection(const Result<Selection>& selection, const TestPack& pack,
                     const AttentionProblem& problem, const DeviceProfile& device) {
  REQUIRE(selection->num_plans >= 1);
  for (std::uint32_t i = 0; i < selection->num_plans; ++i) {
    check_plan(selection->plans[i], pack, problem, device);
  }
  // Whatever the device answers, some plan can be launched if any kernel needs no clusters.
  const LaunchPlan& last = selection->plans[selection->num_plans - 1];
  const bool some_need_none =
      std::any_of(pack.kernels.begin(), pack.kernels.end(), [&](const KernelRecord& record) {
        return record.traits.multi_ctas_kv_mode != MultiCtasKvMode::kClusterSharedMemory &&
               test::serves(record.traits, pack.revision, problem, device, true);
      });
  const bool answered = problem.max_active_clusters >= 0 || device.max_active_clusters[2] >= 0;
  if (some_need_none && !answered) REQUIRE(last.min_active_clusters == 0);
}

struct Tally {
  int served = 0;
  int fallbacks = 0;
  int refused = 0;
};

Tally run(HeuristicRevision revision, unsigned seed, int tables, int problems) {
  std::mt19937 random(seed);
  const TestPack full = test::made_up_release(revision);
  Tally tally;
  for (int t = 0; t < tables; ++t) {
    const TestPack pack = test::thinned(full, test::pick(random, {0.02, 0.2, 0.6, 1.0}), random);
    const selector::KernelTable table = pack.table();
    for (int i = 0; i < problems; ++i) {
      const AttentionProblem problem = test::random_problem(random);
      const DeviceProfile device = test::random_device(random);
      if (!passes_entry(problem, device, revision)) continue;
      const bool any =
          std::any_of(pack.kernels.begin(), pack.kernels.end(), [&](const KernelRecord& record) {
            return test::serves(record.traits, revision, problem, device, true);
          });
      const auto selection = selector::select(table, problem, device);
      INFO("table " << t << " problem " << i << (selection ? "" : selection.error().message()));
      REQUIRE(selection.has_value() == any);
      if (!any) {
        ++tally.refused;
        continue;
      }
      ++tally.served;
      if (selection->best().fallback != FallbackReason::kNone) ++tally.fallbacks;
      check_selection(selection, pack, problem, device);
    }
  }
  return tally;
}

}  // namespace

TEST_CASE("selection succeeds if and only if some kernel serves, and what it chooses serves") {
  for (const auto revision :
       {HeuristicRevision::kTrtllmGenFmha_0_6_13, HeuristicRevision::kTrtllmGenFmha_0_6_8}) {
    const Tally tally = run(revision, 20240 + static_cast<unsigned>(revision), 60, 150);
    std::cout << to_string(revision) << ": " << tally.served << " served (" << tally.fallbacks
              << " by fallback), " << tally.refused << " refused\n";
    CHECK(tally.served > 1500);
    CHECK(tally.fallbacks > 300);
    CHECK(tally.refused > 300);
  }
}

TEST_CASE("the order of records never matters") {
  std::mt19937 random(7);
  for (int t = 0; t < 12; ++t) {
    const auto revision = test::pick(random, {HeuristicRevision::kTrtllmGenFmha_0_6_13,
                                              HeuristicRevision::kTrtllmGenFmha_0_6_8});
    TestPack pack = test::thinned(test::made_up_release(revision), 0.4, random);
    // Kernels equal in every trait: only name and hash tell them apart.
    for (std::size_t i = 0; i < 200; ++i) {
      KernelRecord twin = pack.kernels[random() % pack.kernels.size()];
      twin.name += "_twin";
      twin.sha256.bytes[30] = 1;
      pack.kernels.push_back(twin);
    }
    TestPack shuffled = pack;
    std::shuffle(shuffled.kernels.begin(), shuffled.kernels.end(), random);
    const selector::KernelTable one = pack.table();
    const selector::KernelTable two = shuffled.table();
    for (int i = 0; i < 150; ++i) {
      const AttentionProblem problem = test::random_problem(random);
      const DeviceProfile device = test::random_device(random);
      const auto a = selector::select(one, problem, device);
      const auto b = selector::select(two, problem, device);
      REQUIRE(a.has_value() == b.has_value());
      if (!a) continue;
      REQUIRE(a->num_plans == b->num_plans);
      for (std::uint32_t k = 0; k < a->num_plans; ++k) {
        REQUIRE(*a->plans[k].record == *b->plans[k].record);
        REQUIRE(a->plans[k].grid == b->plans[k].grid);
      }
    }
  }
}

namespace {

bool may_be_looked_up(const KernelTraits& traits, const AttentionProblem& p,
                      const DeviceProfile& device) {
  const bool sparse = p.phase == Phase::kDecode && p.sparse_mla_topk > 0;
  const int vo = p.head_dim_vo == -1 ? p.head_dim_qk : p.head_dim_vo;
  const bool page_fits = p.phase == Phase::kRagged ? traits.page_size == 0
                         : sparse                  ? traits.page_size == 1
                         : traits.dynamic_page     ? p.page_size >= 128
                                                   : traits.page_size == p.page_size;
  return traits.dtype_k == p.dtype_k && traits.head_dim_qk == p.head_dim_qk &&
         traits.head_dim_vo == vo && page_fits && runs_on(traits.arch, device.sm) &&
         (traits.sparse_type != SparseType::kNone) == sparse;
}

}  // namespace

TEST_CASE("a kernel that does not serve can be added without changing a thing") {
  std::mt19937 random(11);
  const TestPack full = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  int added = 0;
  for (int i = 0; i < 400; ++i) {
    const TestPack pack = test::thinned(full, 0.1, random);
    const AttentionProblem problem = test::random_problem(random);
    const DeviceProfile device = test::random_device(random);
    const KernelRecord& extra = full.kernels[random() % full.kernels.size()];
    // The published rules look at kernels on the way that need not serve (a splitting one before
    // the split turns out to be 1), so "unfit" is what no look-up of this problem can meet.
    if (may_be_looked_up(extra.traits, problem, device)) continue;
    REQUIRE_FALSE(test::serves(extra.traits, pack.revision, problem, device, false));
    TestPack more = pack;
    more.kernels.insert(
        more.kernels.begin() + static_cast<std::ptrdiff_t>(random() % (more.kernels.size() + 1)),
        extra);
    const selector::KernelTable one = pack.table();
    const selector::KernelTable two = more.table();
    const auto a = selector::select(one, problem, device);
    const auto b = selector::select(two, problem, device);
    REQUIRE(a.has_value() == b.has_value());
    if (a) REQUIRE(*a->best().record == *b->best().record);
    if (a) REQUIRE(a->best().fallback == b->best().fallback);
    ++added;
  }
  CHECK(added > 100);
}

TEST_CASE("strict never falls back, and what it chooses is what is chosen without it") {
  std::mt19937 random(13);
  selector::SelectOptions strict;
  strict.strict = true;
  const TestPack pack =
      test::thinned(test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13), 0.5, random);
  const selector::KernelTable table = pack.table();
  int chosen = 0;
  for (int i = 0; i < 3000; ++i) {
    const AttentionProblem problem = test::random_problem(random);
    const DeviceProfile device = test::random_device(random);
    const auto a = selector::select(table, problem, device, strict);
    if (!a) continue;
    const auto b = selector::select(table, problem, device);
    REQUIRE(b.has_value());
    REQUIRE(a->best().fallback == FallbackReason::kNone);
    REQUIRE(a->best().record == b->best().record);
    ++chosen;
  }
  CHECK(chosen > 300);
}

TEST_CASE("asking the cost model always changes no choice") {
  std::mt19937 random(17);
  selector::SelectOptions sometimes;
  sometimes.strict = true;
  selector::SelectOptions always = sometimes;
  always.rules.cost_model_always = true;
  for (const auto revision :
       {HeuristicRevision::kTrtllmGenFmha_0_6_13, HeuristicRevision::kTrtllmGenFmha_0_6_8}) {
    const TestPack pack = test::made_up_release(revision);
    const selector::KernelTable table = pack.table();
    int chosen = 0;
    for (int i = 0; i < 3000; ++i) {
      const AttentionProblem problem = test::random_problem(random);
      const DeviceProfile device = test::random_device(random);
      const auto a = selector::select(table, problem, device, sometimes);
      const auto b = selector::select(table, problem, device, always);
      REQUIRE(a.has_value() == b.has_value());
      if (!a) continue;
      REQUIRE(a->best().record == b->best().record);
      REQUIRE(a->best().grid == b->best().grid);
      ++chosen;
    }
    CHECK(chosen > 500);
  }
}

TEST_CASE("chunked attention: windowed kernels alone, split over one chunk, never MLA") {
  std::mt19937 random(19);
  for (const auto revision :
       {HeuristicRevision::kTrtllmGenFmha_0_6_13, HeuristicRevision::kTrtllmGenFmha_0_6_8}) {
    const TestPack pack = test::made_up_release(revision);
    const selector::KernelTable table = pack.table();
    int chosen = 0;
    int mla = 0;
    for (int i = 0; i < 4000; ++i) {
      AttentionProblem problem = test::random_problem(random);
      if (problem.sparse_mla_topk > 0) continue;
      problem.window_left = -1;
      problem.causal = true;
      problem.chunk_size = test::pick(random, {64, 1024, 8192, 1 << 20});
      const DeviceProfile device = test::random_device(random);
      selector::SelectOptions options;
      options.strict = random() % 2 == 0;
      const auto selection = selector::select(table, problem, device, options);
      const bool is_576 = problem.phase == Phase::kDecode && problem.head_dim_qk == 576;
      if (is_576) {  // no such kernel knows chunks
        REQUIRE_FALSE(selection.has_value());
        ++mla;
      }
      if (!selection) continue;
      for (std::uint32_t k = 0; k < selection->num_plans; ++k) {
        const LaunchPlan& plan = selection->plans[k];
        const KernelTraits& traits = plan.record->traits;
        REQUIRE(traits.mask_type == MaskType::kSlidingOrChunked);
        const std::int32_t keys = std::min(problem.chunk_size, problem.max_kv_len);
        REQUIRE(plan.num_ctas_kv <= (keys + 2 * traits.step_kv - 1) / (2 * traits.step_kv));
      }
      ++chosen;
    }
    CHECK(chosen > 500);
    CHECK(mla > 100);
  }
}

TEST_CASE("a chunk that holds the whole KV is laid out as a window that hides a single key") {
  std::mt19937 random(29);
  const TestPack pack = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  const selector::KernelTable table = pack.table();
  int compared = 0;
  for (int i = 0; i < 3000; ++i) {
    AttentionProblem problem = test::random_problem(random);
    if (problem.phase == Phase::kRagged || problem.sparse_mla_topk > 0) continue;
    problem.causal = true;
    problem.max_q_len = 1;  // the cost model looks at the causal kernels on the way
    problem.window_left = -1;
    problem.chunk_size = 1 << 20;
    const DeviceProfile device = test::random_device(random);
    const auto chunked = selector::select(table, problem, device);
    problem.chunk_size = 0;
    problem.window_left = problem.max_kv_len - 2;  // one key is out of sight: a window kernel
    if (problem.window_left < 0) continue;
    const auto windowed = selector::select(table, problem, device);
    REQUIRE(chunked.has_value() == windowed.has_value());
    if (!chunked) continue;
    REQUIRE(chunked->best().record == windowed->best().record);
    REQUIRE(chunked->best().grid == windowed->best().grid);
    ++compared;
  }
  CHECK(compared > 400);
}

TEST_CASE(
    "1 to 256 heads per KV head, 1 to 16 tokens, every tile: no crash, no zero, whole groups") {
  const TestPack full = test::made_up_release(HeuristicRevision::kTrtllmGenFmha_0_6_13);
  for (const int tile_q : {0, 8, 16, 32, 64, 128}) {
    TestPack pack = full;
    if (tile_q != 0) {
      std::erase_if(pack.kernels,
                    [&](const KernelRecord& record) { return record.traits.tile_q != tile_q; });
    }
    const selector::KernelTable table = pack.table();
    AttentionProblem problem;
    problem.dtype_q = problem.dtype_k = problem.dtype_v = Dtype::kBf16;
    problem.page_size = 32;
    problem.max_kv_len = 8192;
    problem.num_kv_heads = 2;
    for (int hpk = 1; hpk <= 256; ++hpk) {
      for (int q = 1; q <= 16; ++q) {
        problem.num_q_heads = 2 * hpk;
        problem.max_q_len = q;
        const auto selection = selector::select(table, problem, test::b200());
        if (!selection) continue;
        const LaunchPlan& plan = selection->best();
        const KernelTraits& traits = plan.record->traits;
        for (const std::uint32_t extent : plan.grid) REQUIRE(extent >= 1);
        REQUIRE(plan.num_tokens_per_cta_q >= 1);
        REQUIRE(plan.num_heads_per_cta >= 1);
        REQUIRE(plan.num_ctas_q * plan.num_tokens_per_cta_q >= q);
        // A CTA holds whole head groups, or a whole part of one.
        REQUIRE((plan.num_heads_per_cta == hpk || hpk % plan.num_heads_per_cta == 0));
        REQUIRE(plan.num_heads_per_cta * plan.num_tokens_per_cta_q <= traits.step_q);
      }
    }
  }
}

}  // namespace cubist
