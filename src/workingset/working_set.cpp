#include "workingset/working_set.h"

#include <algorithm>
#include <array>

#include "workingset/explore.h"
#include "workingset/facts.h"

namespace cubist::workingset {

std::uint64_t WorkingSet::size_bytes() const {
  std::uint64_t bytes = 0;
  for (const Member& member : members) bytes += member.record->size_bytes;
  return bytes;
}

namespace {

/// Where to cut at once: behind the last length that the window hides nothing of, and where an
/// override rule begins or ceases to apply.
struct Cuts {
  std::array<std::vector<std::int32_t>, kDimensions> ends;

  Cuts(const ProblemClass& cls, const overrides::Overrides* overrides) {
    if (cls.problem.window_left >= 0) {
      ends[kMaxKvLen].push_back(std::min(cls.problem.window_left, INT32_MAX - 1) + 1);
    }
    if (overrides == nullptr) return;
    add(overrides->ends_in("batch"), kBatch);
    add(overrides->ends_in("max_q_len"), kMaxQLen);
    add(overrides->ends_in("max_kv_len"), kMaxKvLen);
  }

  void add(const std::vector<std::int32_t>& more, Dimension dimension) {
    ends[dimension].insert(ends[dimension].end(), more.begin(), more.end());
  }

  std::vector<Range> apply(const std::vector<Range>& ranges, Dimension dimension) const {
    std::vector<Range> pieces;
    for (const Range& range : ranges) {
      const std::vector<Range> parts = cut(range, ends[dimension]);
      pieces.insert(pieces.end(), parts.begin(), parts.end());
    }
    return pieces;
  }
};

Status explore_box(const selector::KernelTable& plain, const Query& query, const ProblemClass& cls,
                   const Box& box, Explorer& explorer) {
  const auto table = table_at(plain, query, problem_at(cls.problem, box.low()));
  if (table) return explorer.explore(**table, cls, box);
  explorer.note_gap(cls, box, table.error().message());
  return {};
}

Status explore_class(const selector::KernelTable& plain, const Query& query,
                     const ProblemClass& cls, Explorer& explorer) {
  const Cuts cuts(cls, query.overrides);
  for (const Range& batch : cuts.apply(query.batch, kBatch)) {
    for (const Range& max_q_len : cuts.apply(query.max_q_len, kMaxQLen)) {
      for (const Range& max_kv_len : cuts.apply(query.max_kv_len, kMaxKvLen)) {
        CUBIST_RETURN_IF_ERROR(
            explore_box(plain, query, cls, Box{{batch, max_q_len, max_kv_len}}, explorer));
      }
    }
  }
  return {};
}

}  // namespace

Result<WorkingSet> find_working_set(const selector::KernelTable& table, const Query& query) {
  CUBIST_RETURN_IF_ERROR(validate_query(query));
  Explorer explorer(query);
  for (const ProblemClass& cls : query.classes) {
    CUBIST_RETURN_IF_ERROR(explore_class(table, query, cls, explorer));
  }
  WorkingSet set = explorer.take();
  for (const Member& member : set.members) {
    if (witness_holds(table, query, member.witness, *member.record)) continue;
    return fail(StatusCode::kInternal,
                "kernel '{}' has a witness that does not select it; please report this",
                member.record->name);
  }
  return set;
}

bool witness_holds(const selector::KernelTable& table, const Query& query, const Witness& witness,
                   const KernelRecord& record) {
  DeviceProfile device = query.device;
  device.max_active_clusters = witness.max_active_clusters;
  const auto used = table_at(table, query, witness.problem);
  if (!used) return false;
  const Result<Selection> selection =
      selector::select(**used, witness.problem, device, options_of(query));
  if (!selection) return false;
  for (std::uint32_t i = 0; i < selection->num_plans; ++i) {
    if (selection->plans[i].record == &record) return true;
  }
  return false;
}

}  // namespace cubist::workingset
