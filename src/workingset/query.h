#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "overrides/overrides.h"
#include "selector/select.h"
#include "workingset/range.h"

namespace cubist::workingset {

/// Everything about a problem but its three lengths.
struct ProblemClass {
  std::string label;         ///< "gpt-oss-120b sliding, decode, e4m3/e4m3/bf16, page 32"
  AttentionProblem problem;  ///< batch, max_q_len and max_kv_len do not matter
};

/// A range of problems on one device: every class with every batch, max_q_len and max_kv_len.
/// Cluster answers in `device` are not looked at: all of them are thought possible.
struct Query {
  std::vector<ProblemClass> classes;
  std::vector<Range> batch;
  std::vector<Range> max_q_len;
  std::vector<Range> max_kv_len;
  DeviceProfile device;
  bool strict = false;  ///< as in SelectOptions
  selector::RuleOptions rules;
  /// A user's rules, bound to the table's packs; null: none. Borrowed.
  const overrides::Overrides* overrides = nullptr;

  /// Problems in the range, occupancy answers not counted.
  double num_problems() const;
};

/// The table that a problem of the query is selected from: `plain`, or the overrides' own.
/// errors  kUnsupported: override rules that leave no kernel
Result<const selector::KernelTable*> table_at(const selector::KernelTable& plain,
                                              const Query& query, const AttentionProblem& problem);

/// Options to select with; nothing is said about clusters.
selector::SelectOptions options_of(const Query& query);

/// Ranges and every class at both ends: a range must not contain problems that no call can have.
/// errors  kInvalidArgument with the field; kUnsupported for what no kernel is ever asked for
Status validate_query(const Query& query);

}  // namespace cubist::workingset
