#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "launcher/call_args.h"
#include "model/attention_problem.h"

namespace cubist::launcher {

/// errors  kInvalidArgument: `name` is NULL, or no multiple of `alignment` (bytes)
Status check_address(std::string_view name, std::uint64_t address, std::uint64_t alignment);

/// Checks every address and stride of a paged decode call against the problem, and that no offset
/// overflows 63 bits. Pure; allocates nothing unless it fails.
///
/// problem  with derived fields filled in
/// errors   kInvalidArgument: names the field, its value and the rule
Status check_decode_call(const AttentionProblem& problem, const CallArgs& args);

/// Holds the output's layout, given as a tensor or as strides alone, against the problem's
/// (check_output_layout).
///
/// dense   whether the kernel writes dense outputs only
/// errors  kInvalidArgument: expected and actual layout
Status check_output(const AttentionProblem& problem, const CallArgs& args, bool dense);

}  // namespace cubist::launcher
