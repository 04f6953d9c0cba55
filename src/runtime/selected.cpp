#include "runtime/selected.h"

#include <algorithm>

#include "launcher/decode_args.h"
#include "launcher/decode_maps.h"
#include "launcher/decode_workspace.h"
#include "launcher/inspect_call.h"
#include "launcher/launch.h"
#include "launcher/preconditions.h"
#include "launcher/trtllm_gen/call.h"
#include "launcher/trtllm_gen/prepare.h"
#include "launcher/trtllm_gen/workspace.h"
#include "model/derived_problem.h"
#include "runtime/explanation_text.h"
#include "runtime/trtllm_gen_launch.h"
#include "selector/explain.h"

namespace cubist::runtime {
namespace {

tl::unexpected<Error> not_launchable(const LaunchPlan& plan) {
  return fail(StatusCode::kUnsupported,
              "kernel '{}' is of the family {}, which this version of cubist selects, fetches and "
              "verifies but does not launch; it launches trtllm_gen_fmha and cubist_decode kernels",
              plan.record->name, to_string(plan.family));
}

}  // namespace

Selected::Selected(std::shared_ptr<Runtime> runtime, const AttentionProblem& problem,
                   const DeviceProfile& device, const Selection& selection)
    : runtime_(std::move(runtime)),
      given_problem_(problem),
      problem_(with_derived_fields(problem)),
      trtllm_gen_problem_(trtllm_gen::prepare_problem(problem)),
      device_(device),
      selection_(selection) {}

Result<std::string> Selected::explain() const {
  const selector::SelectOptions options = runtime_->select_options();
  CUBIST_ASSIGN_OR_RETURN(
      const selector::Explanation explanation,
      runtime_->overrides() != nullptr
          ? runtime_->overrides()->explain(given_problem_, device_, options)
          : selector::explain(runtime_->kernels(), given_problem_, device_, options));
  return explanation_text(explanation);
}

Status Selected::fetch() const {
  for (std::uint32_t i = 0; i < selection_.num_plans; ++i) {
    const LaunchPlan& plan = selection_.plans[i];
    std::vector<const KernelRecord*> records = followers(runtime_->aux(), plan, device_.sm);
    records.push_back(plan.record);
    for (const KernelRecord* record : records) {
      auto cubin = runtime_->cubin(*record);
      if (!cubin) return forward_error(cubin);
    }
  }
  return {};
}

Result<WorkspaceNeed> Selected::workspace() const {
  WorkspaceNeed need;
  need.alignment = launcher::kWorkspaceAlignment;
  for (std::uint32_t i = 0; i < selection_.num_plans; ++i) {
    CUBIST_ASSIGN_OR_RETURN(const WorkspaceNeed of_plan, workspace(selection_.plans[i]));
    need.size = std::max(need.size, of_plan.size);
    need.zero_size = std::max(need.zero_size, of_plan.zero_size);
  }
  return need;
}

Result<WorkspaceNeed> Selected::workspace(const LaunchPlan& plan) const {
  switch (plan.family) {
    case KernelFamily::kCubistDecode: {
      CUBIST_ASSIGN_OR_RETURN(const launcher::DecodeWorkspace workspace,
                              launcher::decode_workspace(plan));
      return WorkspaceNeed{workspace.size, workspace.counters_size, launcher::kWorkspaceAlignment};
    }
    case KernelFamily::kTrtllmGenFmha: {
      const trtllm_gen::Workspace workspace =
          trtllm_gen::carve_workspace(trtllm_gen_problem_, plan, device_.num_sms);
      return WorkspaceNeed{workspace.required_bytes, workspace.counters_bytes,
                           launcher::kWorkspaceAlignment};
    }
    default:
      return not_launchable(plan);
  }
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
  if (ready.plan->family == KernelFamily::kTrtllmGenFmha) {
    CUBIST_RETURN_IF_ERROR(
        prepare_followers(*launcher, runtime_->aux(), trtllm_gen_problem_, ready, nullptr));
  }
  return ready.plan;
}

Status Selected::launch(const launcher::CallArgs& args, cuda::CUstream stream) {
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, runtime_->launcher());
  CUBIST_ASSIGN_OR_RETURN(const launcher::ReadyPlan ready,
                          launcher->ready(selection_, memo_, &stream));
  switch (ready.plan->family) {
    case KernelFamily::kCubistDecode:
      return launch_decode(*launcher, ready, args, stream);
    case KernelFamily::kTrtllmGenFmha:
      return launch_trtllm_gen(*launcher, runtime_->aux(), ready, trtllm_gen_problem_,
                               device_.num_sms, args, stream);
    default:
      return not_launchable(*ready.plan);
  }
}

Status Selected::launch_decode(launcher::Launcher& launcher, const launcher::ReadyPlan& ready,
                               const launcher::CallArgs& args, cuda::CUstream stream) const {
  CubistDecodeParams params;
  CUBIST_RETURN_IF_ERROR(launcher::fill_decode_params(problem_, *ready.plan, args, params));
  CUBIST_RETURN_IF_ERROR(
      launcher::encode_decode_maps(launcher.driver(), problem_, *ready.plan, args, params));
  return launcher::launch_kernel(launcher.driver(), ready.kernel->function, *ready.plan, &params,
                                 stream);
}

Status Selected::check(const launcher::CallArgs& args, cuda::CUstream stream) {
  CUBIST_ASSIGN_OR_RETURN(launcher::Launcher * launcher, runtime_->launcher());
  CUBIST_ASSIGN_OR_RETURN(const launcher::ContextInfo* context, launcher->current_context());
  const LaunchPlan& plan = selection_.best();
  CUBIST_RETURN_IF_ERROR(
      launcher::check_plan_fits(plan, runtime_->min_driver_of(*plan.record), *context));
  CUBIST_ASSIGN_OR_RETURN(const WorkspaceNeed need, workspace());
  if (plan.family == KernelFamily::kCubistDecode) {
    CubistDecodeParams unused;
    CUBIST_RETURN_IF_ERROR(launcher::fill_decode_params(problem_, plan, args, unused));
  } else {
    CUBIST_RETURN_IF_ERROR(trtllm_gen::make_call(trtllm_gen_problem_, plan, device_.num_sms, args));
  }
  return launcher::inspect_call(launcher->driver(), *context, problem_, args, need.size, stream);
}

}  // namespace cubist::runtime
