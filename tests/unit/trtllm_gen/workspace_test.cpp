#include "launcher/trtllm_gen/workspace.h"

#include "launcher/trtllm_gen/prepare.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using namespace cubist::trtllm_gen;

constexpr std::uint64_t kCounters = 8388608;

struct Call {
  AttentionProblem problem;
  KernelRecord record;
  LaunchPlan plan;

  Call() {
    problem.num_q_heads = 64;
    problem.num_kv_heads = 8;
    problem.batch = 4;
    record.traits.step_q = 8;
    record.traits.head_dim_per_cta_v = 128;
    plan.record = &record;
    plan.grid = {4, 8, 4};
  }
  Workspace carve() const { return carve_workspace(prepare_problem(problem), plan, 148); }
};

}  // namespace

TEST_CASE("a decode launch that does not split needs its counters and nothing more") {
  const Workspace workspace = Call().carve();
  CHECK(workspace.counters == 0);
  CHECK(workspace.softmax_stats == Workspace::kNone);
  CHECK(workspace.required_bytes == kCounters);
}

TEST_CASE("a split in global memory needs statistics and partial outputs for every CTA") {
  Call call;
  call.record.traits.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory;
  const Workspace workspace = call.carve();
  CHECK(workspace.scratch == kCounters);
  CHECK(workspace.required_bytes == kCounters + 148 * 8 * 8 + 4 * 8 * 4 * 8 * 128 * 2);
  CHECK(check_workspace(workspace, workspace.required_bytes));
  const Status refused = check_workspace(workspace, workspace.required_bytes - 1);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains(std::to_string(workspace.required_bytes)));
}

TEST_CASE("log-sum-exp puts its statistics between counters and scratch") {
  Call call;
  call.problem.lse = true;
  const Workspace workspace = call.carve();
  CHECK(workspace.softmax_stats == kCounters);
  CHECK(workspace.scratch == kCounters + 8 * 64 * 4 * 256 + (1 << 20));
}

TEST_CASE("a context launch over pages uses neither counters nor scratch") {
  Call call;
  call.problem.phase = Phase::kContext;
  const Workspace workspace = call.carve();
  CHECK(workspace.counters == Workspace::kNone);
  CHECK(workspace.required_bytes == 0);
}

TEST_CASE("a bound is what the largest split launch needs, and never less") {
  Call call;
  call.record.traits.multi_ctas_kv_mode = MultiCtasKvMode::kGlobalMemory;
  const AttentionProblem largest = prepare_problem(call.problem);
  const Workspace bound = bound_workspace(largest, call.plan.revision, call.record.traits, 148);
  for (const std::uint32_t ctas : {1U, 2U, 147U, 148U}) {
    call.plan.grid = {ctas, 1, 1};
    for (const std::int32_t batch : {1, 4}) {
      for (const bool lse : {false, true}) {
        call.problem.batch = batch;
        call.problem.lse = lse;
        AttentionProblem most = largest;
        most.lse = lse;
        CHECK(call.carve().required_bytes <=
              bound_workspace(most, call.plan.revision, call.record.traits, 148).required_bytes);
      }
    }
  }
  call.problem.lse = false;
  CHECK(call.carve().required_bytes == bound.required_bytes);
  CHECK(bound.counters_bytes == kCounters);
}
