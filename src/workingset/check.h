#pragma once

#include <optional>

#include "workingset/working_set.h"

namespace cubist::workingset {

struct CheckResult {
  std::uint64_t problems = 0;  ///< drawn
  std::uint64_t selected = 0;  ///< of those, answered with a kernel
  std::uint64_t plans = 0;     ///< looked at
  /// The first problem that selects outside the set, and the kernel.
  std::optional<Witness> outside;
  const KernelRecord* outside_record = nullptr;
};

/// Draws problems of the query at random (lengths uniform or by ratio, each cluster size's answer
/// unknown, none or any number) and looks every plan's kernel up in the set. Stops at the first
/// that is not in it. The same seed draws the same problems.
CheckResult check_working_set(const selector::KernelTable& table, const Query& query,
                              const WorkingSet& set, std::uint64_t problems, std::uint64_t seed);

}  // namespace cubist::workingset
