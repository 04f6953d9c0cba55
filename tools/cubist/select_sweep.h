#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ruled_selection.h"
#include "select_flags.h"

namespace cubist::tools {

/// A stretch of the innermost range over which the same kernel serves.
struct SweepSegment {
  std::vector<std::string> outer;  ///< values of the outer axes
  std::string from;
  std::string to;
  std::string kernel;  ///< empty: refused
  std::string sha256;
  std::string detail;  ///< tile, type, mode; or why it is refused
  std::string fallback;
  StatusCode code = StatusCode::kOk;  ///< why it is refused
  std::uint64_t num_problems = 0;
};

struct SweepResult {
  std::vector<std::string> outer_fields;
  std::string inner_field;
  std::vector<SweepSegment> segments;
  std::uint64_t num_problems = 0;
  std::uint64_t num_fallbacks = 0;
  std::uint64_t num_refused = 0;
};

/// Runs over the ranges in the flags: "1,2,4" is a list, "1..256" a range, "k" stands for 1,024.
/// The innermost axis is max_kv_len where that is a range, else the last field with a range; it is
/// walked value by value and shown as stretches with one kernel each. Ranges of other axes double
/// from their start and end with their end; "1..9:2" steps by 2. errors  kInvalidArgument: an empty
/// or inverted range, no range at all, more than 10,000,000 problems
Result<SweepResult> run_sweep(const RuledSelection& ruled, const ProblemFlags& flags,
                              const selector::SelectOptions& options);

/// When no problem of the sweep is served: the refusal that most of them got. Else nothing.
std::optional<Error> refusal_of_all(const SweepResult& result);

std::string sweep_csv(const SweepResult& result);
std::string sweep_json(const SweepResult& result, const std::optional<Error>& error);
std::string sweep_text(const SweepResult& result);

}  // namespace cubist::tools
