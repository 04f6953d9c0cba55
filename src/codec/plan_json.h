#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "model/attention_problem.h"
#include "model/launch_plan.h"

namespace cubist {

/// Addresses that the extra launches' scalars hold: by default those made up for the recordings, so
/// that a line can be compared with a recording as it is.
struct PlanAddresses {
  std::uint64_t workspace = 0x6000'0000'0000;
  std::uint64_t lse = 0x7500'0000'0000;
};

/// Appends the fields of a plan, without brackets: `"kernel":...,"sha256":...,...`, under the names
/// and in the order of the recordings of the published runtime, then ours: fallback (null, or why
/// the plan is not the published rule's own choice) and min_active_clusters.
void append_plan_fields(const LaunchPlan& plan, const AttentionProblem& problem, std::string& out);

/// Appends one line's answer, without newline:
/// {"in":<in_text>,"ok":true,<plan>,"alternatives":[...]}, or
/// {"in":...,"ok":false,"error":{"code":"unsupported","exit_code":3,"message":"..."}}. `in_text`
/// empty: "in" is left out.
///
/// exit_code  what a command ends with that has this one problem
void append_answer_json(std::string_view in_text, const AttentionProblem& problem,
                        const Selection& selection, std::string& out,
                        const PlanAddresses& addresses = {});
void append_error_json(std::string_view in_text, const Error& error, int exit_code,
                       std::string& out);

/// "rule_finds_no_kernel", "rule_splits_head_groups", "rule_refuses"; empty for kNone.
std::string_view to_string(FallbackReason reason);

}  // namespace cubist
