#include "workingset/facts.h"

#include "selector/request.h"

namespace cubist::workingset {
namespace {

using selector::CandidateNote;
using selector::PassNote;

bool same_candidate(const CandidateNote& a, const CandidateNote& b) {
  return a.record == b.record && a.grid.num_ctas_kv == b.grid.num_ctas_kv && a.waves == b.waves &&
         a.chosen == b.chosen;
}

bool same_pass(const PassNote& a, const PassNote& b, bool compare_splits) {
  if (a.record != b.record || a.default_tile_q != b.default_tile_q ||
      a.asked_cost_model != b.asked_cost_model ||
      a.forced_global_memory != b.forced_global_memory || a.reselection != b.reselection ||
      !(a.wanted == b.wanted) || a.candidates.size() != b.candidates.size()) {
    return false;
  }
  if (compare_splits && a.grid.num_ctas_kv != b.grid.num_ctas_kv) return false;
  for (std::size_t i = 0; i < a.candidates.size(); ++i) {
    if (!same_candidate(a.candidates[i], b.candidates[i])) return false;
  }
  return true;
}

/// Candidates come with falling tile_q, and an equal time keeps the earlier one.
bool pass_is_constant(const PassNote& start, const PassNote& end) {
  bool times_move = false;
  std::size_t chosen = start.candidates.size();
  for (std::size_t i = 0; i < start.candidates.size(); ++i) {
    times_move = times_move || start.candidates[i].time != end.candidates[i].time;
    if (start.candidates[i].chosen) chosen = i;
  }
  // Not asked, or refused on the way: then no time was compared with another.
  if (!times_move || chosen == start.candidates.size()) return true;
  const float latest = end.candidates[chosen].time;
  for (std::size_t i = 0; i < start.candidates.size(); ++i) {
    const float earliest = start.candidates[i].time;
    if (i < chosen && !(latest < earliest)) return false;
    if (i > chosen && !(latest <= earliest)) return false;
  }
  return true;
}

}  // namespace

AttentionProblem problem_at(const AttentionProblem& problem, const Point& point) {
  AttentionProblem p = problem;
  p.batch = point[kBatch];
  p.max_q_len = point[kMaxQLen];
  p.max_kv_len = point[kMaxKvLen];
  return p;
}

PackFacts find_facts(const PackContext& context, const Point& point) {
  PackFacts facts;
  const AttentionProblem problem = problem_at(*context.problem, point);
  DeviceProfile device = context.query->device;
  device.max_active_clusters.fill(-1);
  selector::Request request;
  if (!selector::prepare_request(problem, device, request) ||
      !selector::check_entry(context.pack->pack().revision, request)) {
    facts.entry_refused = true;
    return facts;
  }
  selector::SelectOptions options;
  options.strict = true;
  options.rules = context.query->rules;
  selector::PackAnswer answer;
  Selection selection;
  selector::answer_from_pack(*context.pack, request, device, options, &facts.trace, selection,
                             answer);
  facts.refusal = answer.refusal;
  for (std::uint32_t i = 0; i < selection.num_plans && i < facts.chosen.size(); ++i) {
    facts.chosen[i] = selection.plans[i].record;
  }
  return facts;
}

bool decide_alike(const PackFacts& a, const PackFacts& b, bool compare_splits) {
  if (a.entry_refused != b.entry_refused || a.refusal != b.refusal || a.chosen != b.chosen ||
      a.trace.passes.size() != b.trace.passes.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.trace.passes.size(); ++i) {
    if (!same_pass(a.trace.passes[i], b.trace.passes[i], compare_splits)) return false;
  }
  return true;
}

bool choice_is_constant(const PackFacts& start, const PackFacts& end) {
  for (std::size_t i = 0; i < start.trace.passes.size(); ++i) {
    if (!pass_is_constant(start.trace.passes[i], end.trace.passes[i])) return false;
  }
  return true;
}

}  // namespace cubist::workingset
