#pragma once

#include "base/result.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"

namespace cubist::selector {

/// The first field of `problem` that is out of range by itself or contradicts another; success when
/// there is none. Allocates only for the message of a failure.
Status validate_problem(const AttentionProblem& problem);
Status validate_device(const DeviceProfile& device);

}  // namespace cubist::selector
