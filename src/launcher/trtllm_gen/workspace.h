#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/attention_problem.h"
#include "model/launch_plan.h"

namespace cubist::trtllm_gen {

/// How one caller buffer is carved, front to back, each piece aligned to 16 bytes. Offsets in bytes
/// from its start; kNone where a piece is not there.
///
///   | counters | softmax statistics | scratch: partial statistics, partial O |
///
/// counters  int32, zero before the first launch; every launch leaves them zero
struct Workspace {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};

  std::uint64_t counters = kNone;
  std::uint64_t counters_bytes = 0;  ///< what must be zero, from the start
  std::uint64_t softmax_stats = kNone;
  std::uint64_t scratch = kNone;
  std::uint64_t partial_stats_bytes = 0;  ///< partial O follows; the kernels compute it even unused
  std::uint64_t required_bytes = 0;       ///< smallest buffer that holds all pieces of this plan
};

/// problem must be derived (with_derived_fields). Pure.
Workspace carve_workspace(const AttentionProblem& problem, const LaunchPlan& plan,
                          std::int32_t num_sms);

/// The workspace of a launch of this kernel that is as large as any can be, of a problem of at most
/// this batch, max_q_len and sum_seq_q: no such launch needs more. Statistics grow with those, and
/// a kernel that leaves partial results (multi_ctas_kv_mode gmem, gmem_separate) is launched with
/// at most as many CTAs as the device has SMs, since the KV split only uses SMs that are left over.
/// Pure.
Workspace bound_workspace(const AttentionProblem& problem, HeuristicRevision revision,
                          const KernelTraits& traits, std::int32_t num_sms);

/// errors  kInvalidArgument: the buffer is smaller than required_bytes; says both
Status check_workspace(const Workspace& workspace, std::uint64_t given_bytes);

}  // namespace cubist::trtllm_gen
