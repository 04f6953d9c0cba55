#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "launcher/call_args.h"
#include "launcher/launcher.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "model/launch_plan.h"
#include "runtime/runtime.h"

namespace cubist::runtime {

/// An answer of Runtime::select that can be launched. Any number of threads may use one at once.
class Selected {
 public:
  Selected(std::shared_ptr<Runtime> runtime, const AttentionProblem& problem,
           const DeviceProfile& device, const Selection& selection);

  /// With derived fields filled in.
  const AttentionProblem& problem() const { return problem_; }
  const DeviceProfile& device() const { return device_; }
  const Selection& selection() const { return selection_; }
  Runtime& runtime() const { return *runtime_; }

  /// Why this kernel and no other, for people.
  Result<std::string> explain() const;
  /// Brings the plans' cubins into the store.
  Status fetch() const;
  /// Enough for every plan.
  Result<WorkspaceNeed> workspace() const;

  /// Zeroes what must be zero, in stream order.
  Status clear_workspace(std::uint64_t workspace, std::uint64_t workspace_size,
                         cuda::CUstream stream);
  /// Fetches, loads and sets attributes in the current context, of kernels that follow the main one
  /// too; returns the plan that launches take.
  Result<const LaunchPlan*> prepare();
  /// Queues one call in the current context: the plan's kernel and what follows it (a separate
  /// reduction, an LSE kernel). launcher/decode_args.h and launcher/trtllm_gen/call.h say what is
  /// checked, before anything is queued.
  /// errors  kUnsupported: the plan's kernels cannot be launched by this version; kCapture; and all
  ///         of Launcher::ready
  Status launch(const launcher::CallArgs& args, cuda::CUstream stream);
  /// Looks behind the addresses of a call: launcher/inspect_call.h. Waits for the stream.
  /// errors  as launch(), of inspect_call
  Status check(const launcher::CallArgs& args, cuda::CUstream stream);

 private:
  Result<WorkspaceNeed> workspace(const LaunchPlan& plan) const;
  Status launch_decode(launcher::Launcher& launcher, const launcher::ReadyPlan& ready,
                       const launcher::CallArgs& args, cuda::CUstream stream) const;

  std::shared_ptr<Runtime> runtime_;
  AttentionProblem given_problem_;
  AttentionProblem problem_;
  AttentionProblem trtllm_gen_problem_;  ///< as trtllm-gen kernels are told it
  DeviceProfile device_;
  Selection selection_;
  launcher::ReadyMemo memo_;
};

}  // namespace cubist::runtime
