#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/problem_json.h"
#include "model/device_profile.h"
#include "model/launch_plan.h"
#include "ruled_selection.h"

namespace cubist::tools {

struct JsonlCounts {
  std::uint64_t plans = 0;
  std::uint64_t fallbacks = 0;  ///< among the plans
  std::uint64_t refused = 0;    ///< problems that no kernel serves, or that break a rule
  std::uint64_t malformed = 0;  ///< lines that are no problem
};

/// "3 plans (1 of them fallbacks), 0 refused, 0 malformed lines", on standard error.
void print_counts(const JsonlCounts& counts);

/// Appends the answer to a problem that has a plan, without newline. An error makes the line a
/// refusal. Called from several threads.
using AppendAnswer = Status (*)(std::string_view line, const ProblemLine& problem,
                                const Selection& selection, std::string& out);
/// The plan alone.
Status append_plan_answer(std::string_view line, const ProblemLine& problem,
                          const Selection& selection, std::string& out);

/// Answers problems line by line, in order, on as many threads as the machine has. Every line with
/// anything on it gets one line back; a short write ends the run (kIo). Answers what has arrived
/// before it waits for more, so it can sit behind a pipe.
Result<JsonlCounts> run_jsonl(const RuledSelection& ruled, const DeviceProfile& device,
                              const selector::SelectOptions& options, int input, int output,
                              AppendAnswer append = append_plan_answer);

}  // namespace cubist::tools
