#pragma once

#include <array>
#include <optional>
#include <vector>

#include "selector/kernel_table.h"
#include "selector/rules.h"
#include "workingset/box.h"
#include "workingset/query.h"

namespace cubist::workingset {

/// What one pack's rules did at one point of a class, with notes.
struct PackFacts {
  bool entry_refused = false;
  selector::RuleRefusal refusal = selector::RuleRefusal::kNone;
  selector::RuleTrace trace;
  /// What the rules chose: nothing, one kernel, or one and its sibling without clusters.
  std::array<const KernelRecord*, 2> chosen = {nullptr, nullptr};
};

/// One class seen by one pack: what is the same at every point.
struct PackContext {
  const selector::PackTable* pack = nullptr;
  const Query* query = nullptr;
  const AttentionProblem* problem = nullptr;
};

/// `context.problem` with these lengths.
AttentionProblem problem_at(const AttentionProblem& problem, const Point& point);

/// Runs the pack's own rules at a point, occupancy unknown.
PackFacts find_facts(const PackContext& context, const Point& point);

/// Whether the rules decided alike, in every step that can be seen.
bool decide_alike(const PackFacts& a, const PackFacts& b, bool compare_splits);

/// Whether the cost model, where it was asked, chooses the same at every max_kv_len between these
/// two points, which decide alike and differ in nothing else.
bool choice_is_constant(const PackFacts& start, const PackFacts& end);

}  // namespace cubist::workingset
