#pragma once

#include <string>

#include "selector/explain.h"

namespace cubist::runtime {

/// An explanation in lines for people: what the problem was understood to be, each pack's steps in
/// order, the runner-up, barred kernels.
std::string explanation_text(const selector::Explanation& explanation);

}  // namespace cubist::runtime
