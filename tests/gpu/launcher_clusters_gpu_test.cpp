// Clusters on a real driver. No kernel of ours wants them, so a plan is put into clusters by hand:
// the attribute, the driver's own answer to how many fit, and the walk to the next plan.

#include <cstdio>

#include "launcher/decode_args.h"
#include "launcher/launch.h"
#include "launcher_rig.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;

/// One sequence a head group on one token: a static kernel with a grid that clusters divide.
AttentionProblem static_problem() {
  AttentionProblem problem;
  problem.head_dim_qk = 128;
  problem.num_q_heads = 16;
  problem.num_kv_heads = 2;
  problem.batch = 2;
  problem.max_kv_len = 16384;
  problem.page_size = 16;
  return problem;
}

/// The selected static plan, split over 16 CTAs, in clusters of `size`; the kernel's traits say
/// that it is one of clusters, so that loading sets the attribute for those above 8.
struct Clustered {
  Clustered(const runtime::Selected& selected, std::uint32_t size)
      : record(*selected.selection().best().record) {
    record.traits.multi_ctas_kv_mode = MultiCtasKvMode::kClusterSharedMemory;
    plan = selected.selection().best();
    plan.record = &record;
    plan.num_ctas_kv = 16;
    plan.grid[0] = static_cast<std::uint32_t>(plan.num_ctas_q) * 16;
    plan.cluster = {size, 1, 1};
    plan.min_active_clusters = size > 1 ? 1 : 0;
  }
  KernelRecord record;
  LaunchPlan plan;
};

struct ClusterRig : Rig {
  ClusterRig() : Rig(static_problem()), call(*session, *selected) {
    REQUIRE(selected->selection().best().record->traits.scheduler == TileScheduler::kStatic);
    launcher = std::make_unique<launcher::Launcher>(
        driver_of_process(), [this](const KernelRecord& record) {
          // By name: the record at hand is a changed copy.
          return runtime->cubin(*runtime->find_kernel(record.name).value());
        });
    // As much as 16 CTAs a sequence can need.
    call.args.workspace_size = 64 << 20;
    call.args.workspace = session->allocate(call.args.workspace_size).value();
    REQUIRE(session->fill(call.args.workspace, 0, call.args.workspace_size));
  }

  Status launch(const Selection& selection, const LaunchPlan** taken = nullptr) {
    launcher::ReadyMemo memo;
    const cuda::CUstream stream = nullptr;
    CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                            launcher->ready(selection, memo, &stream));
    if (taken != nullptr) *taken = ready.plan;
    CubistDecodeParams params;
    CUBIST_RETURN_IF_ERROR(
        launcher::fill_decode_params(selected->problem(), *ready.plan, call.args, params));
    return launcher::launch_kernel(launcher->driver(), ready.kernel->function, *ready.plan, &params,
                                   stream);
  }

  Call call;
  std::unique_ptr<launcher::Launcher> launcher;
};

TEST_CASE("a launch in clusters of 2, 8 and 16 CTAs gives float64's answer, to the bit the same") {
  ClusterRig rig;
  std::vector<std::uint16_t> first;
  for (const std::uint32_t size : {1U, 2U, 8U, 16U}) {
    const Clustered clustered(*rig.selected, size);
    Selection selection;
    selection.num_plans = 1;
    selection.plans[0] = clustered.plan;
    rig.call.poison();
    const Status status = rig.launch(selection);
    INFO("clusters of " << size << ": " << (status ? "" : status.error().message()));
    REQUIRE(status.has_value());
    const auto output = rig.call.output();
    rig.call.check(output);
    if (first.empty()) first = output;
    CHECK(output == first);
    std::printf("clusters of %u: launched\n", size);
  }
}

TEST_CASE("where too few clusters fit at once the next plan is taken, by the driver's own answer") {
  ClusterRig rig;
  const Clustered many(*rig.selected, 16);
  const Clustered none(*rig.selected, 1);
  Selection selection;
  selection.num_plans = 2;
  selection.plans[0] = many.plan;
  selection.plans[0].min_active_clusters = 1000;
  selection.plans[1] = none.plan;
  const LaunchPlan* taken = nullptr;
  REQUIRE(rig.launch(selection, &taken));
  CHECK(taken == &selection.plans[1]);
  rig.call.check(rig.call.output());
  selection.num_plans = 1;
  const Status refused = rig.launch(selection);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == StatusCode::kDeviceMismatch);
  CHECK_THAT(refused.error().message(), Contains("1000 clusters must run at once"));
  std::printf("%s\n", refused.error().message().c_str());
}

}  // namespace
}  // namespace cubist
