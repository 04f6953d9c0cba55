#pragma once

#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "model/kernel_record.h"

namespace cubist::test {

/// Whether a trtllm-gen kernel serves a problem, written out from the rules in
/// docs/design/selection.md
/// ("What serves means") without any of the selector's code.
///
/// `clusters`: answers count too: a kernel that reduces through cluster memory serves only if the
/// device has room for its clusters, or if nobody knows.
bool serves(const KernelTraits& row, HeuristicRevision revision, const AttentionProblem& problem,
            const DeviceProfile& device, bool clusters);

}  // namespace cubist::test
