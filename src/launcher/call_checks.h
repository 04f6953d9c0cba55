#pragma once

#include <string_view>

#include "base/result.h"
#include "launcher/call_args.h"
#include "model/attention_problem.h"

namespace cubist::launcher {

/// Checks every address and stride of a paged decode call against the problem, and that no offset
/// overflows 63 bits. Pure; allocates nothing unless it fails.
///
/// problem  with derived fields filled in
/// errors   kInvalidArgument: names the field, its value and the rule
Status check_decode_call(const AttentionProblem& problem, const CallArgs& args);

}  // namespace cubist::launcher
