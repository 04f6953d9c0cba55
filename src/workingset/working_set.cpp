#include "workingset/working_set.h"

#include "workingset/explore.h"

namespace cubist::workingset {

std::uint64_t WorkingSet::size_bytes() const {
  std::uint64_t bytes = 0;
  for (const Member& member : members) bytes += member.record->size_bytes;
  return bytes;
}

namespace {

Status explore_box(const selector::KernelTable& plain, const Query& query, const ProblemClass& cls,
                   const Box& box, Explorer& explorer) {
  const auto table = table_at(plain, query, problem_at(cls.problem, box.low()));
  if (table) return explorer.explore(**table, cls, box);
  explorer.note_gap(cls, box, table.error().message());
  return {};
}

}  // namespace

Result<WorkingSet> find_working_set(const selector::KernelTable& table, const Query& query) {
  CUBIST_RETURN_IF_ERROR(validate_query(query));
  Explorer explorer(query);
  for (const ProblemClass& cls : query.classes) {
    for (const Box& box : boxes_of(cls, {&query})) {
      CUBIST_RETURN_IF_ERROR(explore_box(table, query, cls, box, explorer));
    }
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
