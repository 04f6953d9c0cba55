#pragma once

#include <string>
#include <vector>

#include "workingset/working_set.h"

namespace cubist::workingset {

/// What became of the problems of a range from one side to the other.
enum class ChangeKind : std::uint8_t {
  kSame,      ///< the same bytes
  kRebuilt,   ///< other bytes, but what is chosen is of the same kind: tile, type, mode, ...
  kChanged,   ///< another tile, type, mode, ...
  kAppears,   ///< a kernel where there was none
  kVanishes,  ///< no kernel where there was one
};
std::string_view to_string(ChangeKind kind);  // same rebuilt changed appears vanishes

/// Problems of one class for which one kernel became another.
struct Change {
  ChangeKind kind = ChangeKind::kSame;
  std::string label;                     ///< of the class
  const KernelRecord* before = nullptr;  ///< null: none
  const KernelRecord* after = nullptr;
  std::vector<std::string> differences;  ///< kChanged: "tile_q 16 -> 32"
  double num_problems = 0;
  AttentionProblem example;
};

struct Comparison {
  std::vector<Change> changes;  ///< by class, most problems first; kSame included
  double num_problems = 0;      ///< in the range
  double num_refused = 0;       ///< without a kernel on either side
  std::uint64_t boxes = 0;

  double count(ChangeKind kind) const;
};

/// One side: a table, and the device and options in its query.
struct Side {
  const selector::KernelTable* table = nullptr;
  Query query;
};

/// Compares what is chosen first, nothing known about clusters, for every problem of
/// `before.query`'s range (the other query's classes and ranges are not looked at). Exact like a
/// working set: the range is cut into boxes in which both sides are proved.
/// errors  those of validate_query, for each side
Result<Comparison> compare(const Side& before, const Side& after);

}  // namespace cubist::workingset
