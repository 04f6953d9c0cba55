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

/// Device memory that launches of a selection need.
struct WorkspaceNeed {
  std::uint64_t size = 0;       ///< bytes, enough for every plan
  std::uint64_t zero_size = 0;  ///< bytes at the start that must be zero before the first launch
  std::uint32_t alignment = 1;  ///< bytes
};

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
  Result<WorkspaceNeed> workspace() const;

  /// Zeroes what must be zero, in stream order.
  Status clear_workspace(std::uint64_t workspace, std::uint64_t workspace_size,
                         cuda::CUstream stream);
  /// Fetches, loads and sets attributes in the current context; returns the plan that launches
  /// take.
  Result<const LaunchPlan*> prepare();
  /// Queues one launch in the current context; see launcher/decode_args.h for what is checked.
  /// errors  kUnsupported: the plan's kernels cannot be launched by this version; kCapture; and all
  ///         of Launcher::ready
  Status launch(const launcher::CallArgs& args, cuda::CUstream stream);

 private:
  std::shared_ptr<Runtime> runtime_;
  AttentionProblem given_problem_;
  AttentionProblem problem_;
  DeviceProfile device_;
  Selection selection_;
  launcher::ReadyMemo memo_;
};

}  // namespace cubist::runtime
