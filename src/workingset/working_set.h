#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "selector/kernel_table.h"
#include "workingset/query.h"

namespace cubist::workingset {

/// A problem, and what the device says about clusters: one that `select` answers with a certain
/// kernel.
struct Witness {
  AttentionProblem problem;
  /// Index = cluster size; -1 = unknown.
  std::array<std::int32_t, 17> max_active_clusters{};
  std::string label;  ///< of its class
};

struct Member {
  std::string_view pack;  ///< name of the pack
  const KernelRecord* record = nullptr;
  FallbackReason fallback = FallbackReason::kNone;  ///< of the plan that names it, in the witness
  Witness witness;
};

/// A part of the range where no kernel serves.
struct Gap {
  Witness example;
  double num_problems = 0;  ///< of the same class, refused with the same words
  std::string message;
};

struct WorkingSet {
  std::vector<Member> members;  ///< by pack, then name
  std::vector<Gap> gaps;        ///< by class
  std::uint64_t boxes = 0;      ///< proved
  std::uint64_t points = 0;     ///< looked at to prove them

  std::uint64_t size_bytes() const;
};

/// The kernels `select` can answer with in the query's range, whatever is known about clusters, and
/// no others. How it is found and why it is exact: docs/design/working-set.md.
///
/// table    the manifest's packs; `WorkingSet` borrows records from them
/// returns  a set that is empty only if every problem is a gap
/// errors   those of validate_query; kInternal if a proof and `select` disagree
Result<WorkingSet> find_working_set(const selector::KernelTable& table, const Query& query);

/// Whether a plan of `select` for this witness names the kernel.
bool witness_holds(const selector::KernelTable& table, const Query& query, const Witness& witness,
                   const KernelRecord& record);

}  // namespace cubist::workingset
