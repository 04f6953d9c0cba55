#pragma once

#include "codec/problem_fields.h"
#include "model/launch_plan.h"
#include "selector/explain.h"

namespace cubist::tools {

/// One selection for people, on standard output.
void print_selection(const Selection& selection);

/// An explanation for people: steps in order, runner-up, and for a miss the nearest kernels.
void print_explanation(const selector::Explanation& explanation);

/// A refusal with the nearest kernels, and in which fields each differs, behind its first line; as
/// it was where there are none.
Error with_nearest(const Error& refusal, const selector::Explanation& explanation);

}  // namespace cubist::tools
