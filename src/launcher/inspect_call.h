#pragma once

#include <cstdint>

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/call_args.h"
#include "launcher/context_table.h"
#include "model/attention_problem.h"

namespace cubist::launcher {

/// Looks behind the addresses of a call, for debugging: every tensor must be memory that the driver
/// knows, of the context's device, long enough for its shape and strides; lengths on the device
/// must be within the problem's limits, cumulative lengths ascending, and the pages of every
/// sequence inside K and V. Waits for the stream and copies the integer tensors. Launches nothing.
///
/// context         the current one
/// problem         with derived fields filled in
/// workspace_size  bytes the launch needs
/// errors          kInvalidArgument: names tensor, value and rule; kCapture: the stream is
/// captured;
///                 kUnsupported: a driver that cannot say where memory lies
Status inspect_call(const driver::Driver& driver, const ContextInfo& context,
                    const AttentionProblem& problem, const CallArgs& args,
                    std::uint64_t workspace_size, cuda::CUstream stream);

}  // namespace cubist::launcher
