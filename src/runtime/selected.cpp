#include "runtime/selected.h"

#include <algorithm>

#include "launcher/decode_args.h"
#include "launcher/decode_maps.h"
#include "launcher/decode_workspace.h"
#include "launcher/launch.h"
#include "model/derived_problem.h"
#include "runtime/explanation_text.h"
#include "selector/explain.h"

namespace cubist::runtime {
namespace {

Status check_launchable(const LaunchPlan& plan) {
  if (plan.family == KernelFamily::kCubistDecode) return {};
  return fail(StatusCode::kUnsupported,
              "kernel '{}' is of the family {}, which this version of cubist selects, fetches and "
              "verifies but does not launch; it launches cubist_decode kernels",
              plan.record->name, to_string(plan.family));
}

}  // namespace

Selected::Selected(std::shared_ptr<Runtime> runtime, const AttentionProblem& problem,
                   const DeviceProfile& device, const Selection& selection)
    : runtime_(std::move(runtime)),
      given_problem_(problem),
      problem_(with_derived_fields(problem)),
      device_(device),
      selection_(selection) {}

Result<std::string> Selected::explain() const {
  CUBIST_ASSIGN_OR_RETURN(
      const selector::Explanation explanation,
      selector::explain(runtime_->kernels(), given_problem_, device_, runtime_->select_options()));
  return explanation_text(explanation);
}

Status Selected::fetch() const {
  for (std::uint32_t i = 0; i < selection_.num_plans; ++i) {
    auto cubin = runtime_->cubin(*selection_.plans[i].record);
    if (!cubin) return forward_error(cubin);
  }
  return {};
}

Result<WorkspaceNeed> Selected::workspace() const {
  WorkspaceNeed need;
  need.alignment = launcher::kWorkspaceAlignment;
  for (std::uint32_t i = 0; i < selection_.num_plans; ++i) {
    CUBIST_RETURN_IF_ERROR(check_launchable(selection_.plans[i]));
    CUBIST_ASSIGN_OR_RETURN(const launcher::DecodeWorkspace workspace,
                            launcher::decode_workspace(selection_.plans[i]));
    need.size = std::max(need.size, workspace.size);
    need.zero_size = std::max(need.zero_size, workspace.counters_size);
  }
  return need;
}

Status Selected::clear_workspace(std::uint64_t workspace, std::uint64_t workspace_size,
                                 cuda::CUstream stream) {
  CUBIST_ASSIGN_OR_RETURN(const WorkspaceNeed need, this->workspace());
  if (need.zero_size == 0) return {};
  if (workspace == 0 || workspace_size < need.size || workspace % need.alignment != 0) {
    return fail(StatusCode::kInvalidArgument,
                "workspace is {:#x} with {} bytes; {} bytes aligned to {} are needed", workspace,
                workspace_size, need.size, need.alignment);
  }
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, runtime_->launcher());
  driver::Driver& driver = launcher->driver();
  CUBIST_RETURN_IF_ERROR(driver.init());
  return driver.check(driver.table().cuMemsetD8Async(workspace, 0, need.zero_size, stream),
                      "cuMemsetD8Async");
}

Result<const LaunchPlan*> Selected::prepare() {
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, runtime_->launcher());
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          launcher->ready(selection_, memo_, nullptr));
  return ready.plan;
}

Status Selected::launch(const launcher::CallArgs& args, cuda::CUstream stream) {
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, runtime_->launcher());
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          launcher->ready(selection_, memo_, &stream));
  CUBIST_RETURN_IF_ERROR(check_launchable(*ready.plan));
  CubistDecodeParams params;
  CUBIST_RETURN_IF_ERROR(launcher::fill_decode_params(problem_, *ready.plan, args, params));
  CUBIST_RETURN_IF_ERROR(
      launcher::encode_decode_maps(launcher->driver(), problem_, *ready.plan, args, params));
  return launcher::launch_kernel(launcher->driver(), ready.kernel->function, *ready.plan, &params,
                                 stream);
}

}  // namespace cubist::runtime
