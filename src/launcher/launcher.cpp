#include "launcher/launcher.h"

#include "launcher/launch.h"
#include "launcher/preconditions.h"

namespace cubist::launcher {
namespace {

/// Whether the plan's last precondition holds; only the driver can tell, and only for a loaded
/// kernel.
Status check_clusters(const driver::Driver& driver, const LaunchPlan& plan,
                      const LoadedKernel& kernel, const ContextInfo& context) {
  if (plan.min_active_clusters <= 0) return {};
  CUBIST_ASSIGN_OR_RETURN(const int active, max_active_clusters(driver, kernel.function, plan));
  if (active >= plan.min_active_clusters) return {};
  return fail(StatusCode::kDeviceMismatch,
              "kernel '{}': {} clusters must run at once, device {} ('{}') fits {}",
              plan.record->name, plan.min_active_clusters, context.ordinal, context.profile.name,
              active);
}

}  // namespace

Launcher::Launcher(std::shared_ptr<driver::Driver> driver, CubinSource source,
                   DriverNeed driver_need)
    : driver_(std::move(driver)),
      driver_need_(std::move(driver_need)),
      modules_(driver_, std::move(source)) {}

Result<ReadyPlan> Launcher::ready(const Selection& selection, ReadyMemo& memo,
                                  const cuda::CUstream* stream) {
  CUBIST_ASSIGN_OR_RETURN(const ContextInfo* context, contexts_.current(*driver_));
  return this->ready(selection, memo, *context, stream);
}

Result<ReadyPlan> Launcher::ready(const Selection& selection, ReadyMemo& memo,
                                  const ContextInfo& context, const cuda::CUstream* stream) {
  if (const ReadyPlan* found = memo.plans_.find(context.id)) return *found;
  CUBIST_ASSIGN_OR_RETURN(ReadyPlan ready, find_ready(selection, context, stream));
  const std::lock_guard lock(memo.mutex_);
  if (const ReadyPlan* found = memo.plans_.find(context.id)) return *found;
  return memo.plans_.add(context.id, ready);
}

Result<ReadyPlan> Launcher::find_ready(const Selection& selection, const ContextInfo& context,
                                       const cuda::CUstream* stream) {
  if (selection.num_plans == 0) return fail(StatusCode::kInternal, "a selection without a plan");
  Status first_reason;
  for (std::uint32_t i = 0; i < selection.num_plans; ++i) {
    const LaunchPlan& plan = selection.plans[i];
    Status holds = check_plan_fits(plan, min_driver_of(*plan.record), context);
    if (holds) {
      CUBIST_ASSIGN_OR_RETURN(const LoadedKernel* kernel,
                              modules_.load(*plan.record, context, stream));
      holds = check_clusters(*driver_, plan, *kernel, context);
      if (holds) return ReadyPlan{&plan, kernel, &context};
      if (holds.error().code() != StatusCode::kDeviceMismatch) return forward_error(holds);
    }
    if (first_reason) first_reason = std::move(holds);
  }
  return forward_error(first_reason);
}

}  // namespace cubist::launcher
