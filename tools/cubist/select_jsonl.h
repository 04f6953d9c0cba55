#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/device_profile.h"
#include "ruled_selection.h"

namespace cubist::tools {

struct JsonlCounts {
  std::uint64_t plans = 0;
  std::uint64_t fallbacks = 0;  ///< among the plans
  std::uint64_t refused = 0;    ///< problems that no kernel serves, or that break a rule
  std::uint64_t malformed = 0;  ///< lines that are no problem
};

/// Answers problems line by line, in order, on as many threads as the machine has. Every line with
/// anything on it gets one line back; a short write ends the run (kIo). Answers what has arrived
/// before it waits for more, so it can sit behind a pipe.
Result<JsonlCounts> run_jsonl(const RuledSelection& ruled, const DeviceProfile& device,
                              const selector::SelectOptions& options, int input, int output);

}  // namespace cubist::tools
