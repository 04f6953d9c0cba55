#pragma once

#include <cstdint>

#include "base/result.h"
#include "gpu_session.h"
#include "launch_check.h"
#include "runtime/selected.h"

namespace cubist::tools {

/// One selection launched on random inputs.
struct LaunchRun {
  const LaunchPlan* plan = nullptr;  ///< the one that was launched; belongs to the selection
  double load_ms = 0.0;              ///< of the kernel, by the driver
  double time_us = -1.0;      ///< GPU time of a launch, mean of those in a row; -1: not measured
  int repeats = 0;            ///< launches that were timed
  bool counters_zero = true;  ///< the workspace was left as a next launch needs it
  bool repeatable = true;     ///< the last of the timed launches gave the first one's bits
  LaunchCheck check;
};

/// Makes inputs, launches once, then `repeats` times in a row, and compares with float64.
///
/// session  the context of the GPU that `selected` was made for, current on this thread
Result<LaunchRun> run_launch(runtime::Selected& selected, GpuSession& session, std::uint64_t seed,
                             int repeats);

}  // namespace cubist::tools
