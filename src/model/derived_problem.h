#pragma once

#include "model/attention_problem.h"

namespace cubist {

/// The same problem with every field that says "derived" filled in: sums, page counts, dense
/// strides. Fields that are given stay as they are. Products saturate instead of overflowing;
/// ranges are the selector's business.
AttentionProblem with_derived_fields(const AttentionProblem& problem);

}  // namespace cubist
