#include "workingset/explore.h"

#include <algorithm>
#include <tuple>

#include "workingset/answers.h"

namespace cubist::workingset {

Status Explorer::explore(const selector::KernelTable& table, const ProblemClass& cls,
                         const Box& box) {
  table_ = &table;
  class_ = &cls;
  BoxProver prover(table, query_, cls.problem);
  Status done = prove(prover, box);
  points_ += prover.points();
  return done;
}

Status Explorer::prove(BoxProver& prover, const Box& box) {
  const BoxDecision decision = prover.decide(box);
  if (decision.kind == BoxDecision::Kind::kUndecided) {
    for (const Box& half : halves(box, decision.cut_at)) {
      CUBIST_RETURN_IF_ERROR(prove(prover, half));
    }
    return {};
  }
  if (decision.kind == BoxDecision::Kind::kAnswers) return collect(decision, box);
  const Result<Selection> refused = selector::select(
      *table_, problem_at(class_->problem, box.low()), query_.device, options_of(query_));
  note_gap(*class_, box, refused ? std::string() : refused.error().message());
  return {};
}

Status Explorer::collect(const BoxDecision& decision, const Box& box) {
  ++boxes_;
  const KernelRecord* seen_first = nullptr;
  const std::string_view pack = decision.pack->pack().name;
  Status visited = visit_all_answers(
      *table_, PackContext{decision.pack, &query_, &class_->problem}, box.low(), decision.order,
      [&](const LaunchPlan& plan, std::uint32_t place, const Witness& witness) {
        if (seen_first == nullptr) seen_first = plan.record;
        Found& found = found_[plan.record];
        if (found.member.record != nullptr && found.place <= place) return;
        found.place = place;
        found.member = Member{pack, plan.record, plan.fallback, witness};
        found.member.witness.label = class_->label;
      });
  if (!visited || seen_first == decision.first()) return visited;
  return fail(StatusCode::kInternal,
              "the proof for batch {}, max_q_len {}, max_kv_len {} expects kernel '{}' and select "
              "answers '{}'; please report this",
              box.low()[kBatch], box.low()[kMaxQLen], box.low()[kMaxKvLen], decision.first()->name,
              seen_first == nullptr ? "none" : seen_first->name.view());
}

void Explorer::note_gap(const ProblemClass& cls, const Box& box, const std::string& message) {
  ++boxes_;
  Gap gap;
  gap.example.problem = problem_at(cls.problem, box.low());
  gap.example.max_active_clusters.fill(-1);
  gap.example.label = cls.label;
  gap.message = message;
  Gap& kept = gaps_.try_emplace({cls.label, message}, gap).first->second;
  kept.num_problems += size_of(box);
}

WorkingSet Explorer::take() {
  WorkingSet set;
  for (auto& [record, found] : found_) set.members.push_back(std::move(found.member));
  std::sort(set.members.begin(), set.members.end(), [](const Member& a, const Member& b) {
    return std::tie(a.pack, a.record->name, a.record->sha256) <
           std::tie(b.pack, b.record->name, b.record->sha256);
  });
  for (auto& [key, gap] : gaps_) set.gaps.push_back(std::move(gap));
  set.boxes = boxes_;
  set.points = points_;
  return set;
}

}  // namespace cubist::workingset
