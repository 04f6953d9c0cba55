#pragma once

#include <functional>
#include <vector>

#include "workingset/facts.h"
#include "workingset/working_set.h"

namespace cubist::workingset {

/// Asks `select` at one point of a class with every answer about clusters that matters: for each
/// cluster size in use unknown, none, and just enough for each kernel of that size.
///
/// order   kernels of `pack` that the fallback may try, besides those a plan names anyway
/// visit   is called for each plan of each selection: the plan, its place, the problem and answers
/// errors  those of `select` (the same for every answer)
Status visit_all_answers(
    const selector::KernelTable& table, const PackContext& context, const Point& point,
    const std::vector<const KernelRecord*>& order,
    const std::function<void(const LaunchPlan&, std::uint32_t, const Witness&)>& visit);

}  // namespace cubist::workingset
