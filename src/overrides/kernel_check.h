#pragma once

#include <span>

#include "base/result.h"
#include "overrides/rule_file.h"
#include "selector/kernel_table.h"

namespace cubist::overrides {

/// Holds a rule file against the kernels it is for, so that none of its words silently misses.
///
/// errors  kInvalidArgument, by file, rule and field: a barred hash that no kernel has; force or
///         forbid that matches no kernel; a condition on types, head sizes or page size that holds
///         for no kernel's problems
Status check_against_kernels(const RuleFile& file, std::span<const selector::PackView> packs);

}  // namespace cubist::overrides
