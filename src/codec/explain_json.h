#pragma once

#include <string>

#include "model/attention_problem.h"
#include "selector/explain.h"

namespace cubist {

/// Appends an explanation as one JSON object: request, packs (steps in order, passes with the cost
/// model's candidates, nearest kernels of a miss), runner_up, barred.
void append_explanation_json(const selector::Explanation& explanation, std::string& out);

}  // namespace cubist
