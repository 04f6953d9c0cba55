#pragma once

#include <string>
#include <vector>

#include "launcher/trtllm_gen/tensor_maps.h"
#include "model/attention_problem.h"
#include "model/kernel_record.h"
#include "model/launch_plan.h"

namespace cubist::test {

/// A launch that the published runtime made: problem, the kernel's traits as far as the recording
/// tells them, and the bytes and descriptors it launched with.
struct RecordedLaunch {
  std::string id;
  AttentionProblem problem;
  std::int32_t num_sms = 0;
  KernelRecord record;
  LaunchPlan plan;  ///< record is set by with_record()
  bool kv_combined = false;
  std::string params_hex;
  std::size_t params_offset = 0;
  std::size_t params_size = 0;
  std::vector<TensorMapSpec> tensor_maps;  ///< slots borrow from static text
  std::int32_t reshape_factor_kv = 1;

  LaunchPlan with_record() const {
    LaunchPlan linked = plan;
    linked.record = &record;
    return linked;
  }
};

/// Every recorded launch of a gzipped JSON lines file; refusals are left out.
std::vector<RecordedLaunch> read_recorded_launches(const std::string& path,
                                                   HeuristicRevision revision);

}  // namespace cubist::test
