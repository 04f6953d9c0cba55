#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "codec/problem_fields.h"

namespace cubist {

/// What one line of problems holds besides the problem.
struct ProblemLine {
  ProblemAndDevice value;
  std::string_view in_text;  ///< the problem object's own text, inside the line that was read
};

/// Reads one problem: a JSON object with a problem's fields, or an object whose "in" is one (its
/// other keys, results of an earlier run, are passed over). "id" and "family" are labels, and
/// "addresses" is for launches; all three are passed over. Fields left out keep the defaults; sm,
/// num_sms and gpcs replace those of `device`.
///
/// errors  kInvalidArgument: no JSON, an unknown or repeated field, a wrong type; with the offset
///         and the field's name. Values out of range are the selector's to refuse.
Status read_problem(std::string_view text, const DeviceProfile& device, ProblemLine& out);

/// Appends the problem as such an object: the fields that selection always looks at, and those that
/// differ from their defaults.
void append_problem_json(const AttentionProblem& problem, const DeviceProfile& device,
                         std::string& out);

}  // namespace cubist
