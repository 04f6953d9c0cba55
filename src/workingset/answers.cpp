#include "workingset/answers.h"

#include <algorithm>
#include <map>

#include "selector/plan.h"
#include "selector/request.h"
#include "selector/select.h"
#include "selector/serves.h"

namespace cubist::workingset {
namespace {

/// Answers worth trying, by cluster size.
using AnswersOfSize = std::map<std::size_t, std::vector<std::int32_t>>;

void note_plan(const LaunchPlan& plan, AnswersOfSize& answers) {
  if (plan.min_active_clusters == 0) return;
  std::vector<std::int32_t>& values = answers[plan.cluster[0]];
  if (values.empty()) values = {-1, 0};
  if (std::find(values.begin(), values.end(), plan.min_active_clusters) == values.end()) {
    values.push_back(plan.min_active_clusters);
  }
}

void note_fallback(const PackContext& context, const selector::Request& request,
                   const std::vector<const KernelRecord*>& order, AnswersOfSize& answers) {
  const selector::PackView& pack = context.pack->pack();
  for (const KernelRecord* record : order) {
    selector::CtaGrid grid;
    if (!selector::find_misfits(request, record->traits, pack.revision, false, grid).none()) {
      continue;
    }
    LaunchPlan plan;
    selector::fill_plan(pack, request, *record, grid, FallbackReason::kNone, plan);
    note_plan(plan, answers);
  }
}

/// Moves to the next combination; false after the last.
bool next_combination(const AnswersOfSize& answers, std::vector<std::size_t>& at) {
  std::size_t i = 0;
  for (const auto& [size, values] : answers) {
    if (++at[i] < values.size()) return true;
    at[i++] = 0;
  }
  return false;
}

}  // namespace

Status visit_all_answers(
    const selector::KernelTable& table, const PackContext& context, const Point& point,
    const std::vector<const KernelRecord*>& order,
    const std::function<void(const LaunchPlan&, std::uint32_t, const Witness&)>& visit) {
  Witness witness;
  witness.problem = problem_at(*context.problem, point);
  DeviceProfile device = context.query->device;
  device.max_active_clusters.fill(-1);
  const selector::SelectOptions options = options_of(*context.query);

  selector::Request request;
  CUBIST_RETURN_IF_ERROR(selector::prepare_request(witness.problem, device, request));
  Selection selection;
  CUBIST_RETURN_IF_ERROR(selector::select_into(table, witness.problem, device, options, selection));
  AnswersOfSize answers;
  for (std::uint32_t i = 0; i < selection.num_plans; ++i) note_plan(selection.plans[i], answers);
  note_fallback(context, request, order, answers);

  std::vector<std::size_t> at(answers.size(), 0);
  do {
    std::size_t i = 0;
    for (const auto& [size, values] : answers) {
      device.max_active_clusters.at(size) = values[at[i++]];
    }
    witness.max_active_clusters = device.max_active_clusters;
    CUBIST_RETURN_IF_ERROR(
        selector::select_into(table, witness.problem, device, options, selection));
    for (std::uint32_t k = 0; k < selection.num_plans; ++k) visit(selection.plans[k], k, witness);
  } while (next_combination(answers, at));
  return {};
}

}  // namespace cubist::workingset
