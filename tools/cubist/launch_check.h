#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch_inputs.h"

namespace cubist::tools {

/// What a launch wrote.
struct LaunchOutputs {
  std::vector<std::uint16_t> o;  ///< dense, as bit patterns
  std::vector<float> lse;        ///< empty unless the problem wants it
};

/// How far outputs are from the float64 reference.
struct LaunchCheck {
  std::uint64_t compared = 0;  ///< elements of O
  std::uint64_t total = 0;
  double worst_of_tolerance = 0.0;  ///< largest |error| / tolerance; above 1: wrong
  double relative_error = 0.0;      ///< Frobenius norm of the error over that of the reference
  double worst_lse = 0.0;           ///< largest |error|
  std::string failure;              ///< empty, or the first element that is wrong
};

/// Compares all (sequence, KV head) pairs or, where that would take longer than about a second,
/// some of each sequence.
LaunchCheck check_launch(const AttentionProblem& problem, const LaunchInputs& inputs,
                         const LaunchScales& scales, const LaunchOutputs& outputs);

}  // namespace cubist::tools
