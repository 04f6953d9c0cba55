#include "workingset/explore.h"

#include <algorithm>
#include <cmath>

#include "workingset/answers.h"
#include "workingset/ranking.h"

namespace cubist::workingset {
namespace {

double ratio(const Range& range) {
  return static_cast<double>(range.last) / static_cast<double>(range.first);
}

/// The dimension with the widest ratio among those in `candidates`; single values do not count.
Dimension widest(const Box& box, const std::array<bool, kDimensions>& candidates) {
  std::size_t best = kMaxKvLen;
  double best_ratio = 0;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    if (!candidates[d] || box.ranges[d].size() < 2) continue;
    if (ratio(box.ranges[d]) > best_ratio) {
      best = d;
      best_ratio = ratio(box.ranges[d]);
    }
  }
  return static_cast<Dimension>(best);
}

double size_of(const Box& box) {
  double size = 1;
  for (const Range& range : box.ranges) size *= static_cast<double>(range.size());
  return size;
}

}  // namespace

Status Explorer::explore(const selector::KernelTable& table, const ProblemClass& cls,
                         const Box& box) {
  table_ = &table;
  class_ = &cls;
  return prove(box);
}

Status Explorer::prove(const Box& box) {
  for (const selector::PackTable& pack : table_->packs()) {
    if (!selector::pack_fits_device(pack, query_.device.sm)) continue;
    const PackContext context{&pack, &query_, &class_->problem};
    PackFacts facts;
    std::vector<const KernelRecord*> order;
    switch (look_at(context, box, facts, order)) {
      case Verdict::kAnswers:
        return collect(context, box, facts, order);
      case Verdict::kPassesOn:
        continue;
      case Verdict::kUndecided:
        return cut(box, cut_at_);
    }
  }
  const Result<Selection> refused = selector::select(
      *table_, problem_at(class_->problem, box.low()), query_.device, options_of(query_));
  note_gap(*class_, box, refused ? std::string() : refused.error().message());
  return {};
}

Status Explorer::cut(const Box& box, Dimension dimension) {
  Box first = box;
  Box second = box;
  first.ranges[dimension].last = middle(box.ranges[dimension], dimension);
  second.ranges[dimension].first = first.ranges[dimension].last + 1;
  CUBIST_RETURN_IF_ERROR(prove(first));
  return prove(second);
}

bool Explorer::corners_agree(const PackContext& context, const Box& box, PackFacts& low) {
  std::array<PackFacts, kCorners> corners;
  for (std::size_t corner = 0; corner < kCorners; ++corner) {
    const std::size_t same = box.first_alike(corner);
    if (same != corner) {
      corners[corner] = corners[same];
      continue;
    }
    ++points_;
    corners[corner] = find_facts(context, box.corner(corner));
  }
  const bool choice_without_sibling =
      corners[0].chosen[0] != nullptr && corners[0].refusal != selector::RuleRefusal::kNone;
  const bool compare_splits = query_.rules.enable_tile_kv64 || choice_without_sibling;
  std::array<bool, kDimensions> differs{};
  for (std::size_t corner = 0; corner < kCorners; ++corner) {
    for (std::size_t d = 0; d < kDimensions; ++d) {
      const std::size_t other = corner ^ (std::size_t{1} << d);
      if (other < corner || differs[d]) continue;
      differs[d] = !decide_alike(corners[corner], corners[other], compare_splits);
    }
  }
  low = std::move(corners[0]);
  if (std::any_of(differs.begin(), differs.end(), [](bool on) { return on; })) {
    cut_at_ = widest(box, differs);
    return false;
  }
  cut_at_ = kMaxKvLen;
  return choice_is_constant(low, corners[1U << kMaxKvLen]);
}

Explorer::Verdict Explorer::look_at(const PackContext& context, const Box& box, PackFacts& facts,
                                    std::vector<const KernelRecord*>& order) {
  if (!corners_agree(context, box, facts)) return Verdict::kUndecided;
  if (facts.entry_refused) return Verdict::kPassesOn;
  if (facts.refusal == selector::RuleRefusal::kNone) return Verdict::kAnswers;
  const bool falls_back =
      !query_.strict && context.pack->pack().family == KernelFamily::kTrtllmGenFmha;
  if (falls_back) {
    BoxRanking ranking = rank_in_box(context, box);
    if (!ranking.proved) {
      cut_at_ = ranking.cut_at;
      return Verdict::kUndecided;
    }
    order = std::move(ranking.order);
  }
  return order.empty() && facts.chosen[0] == nullptr ? Verdict::kPassesOn : Verdict::kAnswers;
}

Status Explorer::collect(const PackContext& context, const Box& box, const PackFacts& facts,
                         const std::vector<const KernelRecord*>& order) {
  ++boxes_;
  const KernelRecord* first = facts.chosen[0] != nullptr ? facts.chosen[0] : order.front();
  const KernelRecord* seen_first = nullptr;
  const std::string_view pack = context.pack->pack().name;
  Status visited =
      visit_all_answers(*table_, context, box.low(), order,
                        [&](const LaunchPlan& plan, std::uint32_t place, const Witness& witness) {
                          if (seen_first == nullptr) seen_first = plan.record;
                          Found& found = found_[plan.record];
                          if (found.member.record != nullptr && found.place <= place) return;
                          found.place = place;
                          found.member = Member{pack, plan.record, plan.fallback, witness};
                          found.member.witness.label = class_->label;
                        });
  if (!visited) return visited;
  if (seen_first == first) return {};
  return fail(StatusCode::kInternal,
              "the proof for batch {}, max_q_len {}, max_kv_len {} expects kernel '{}' and select "
              "answers '{}'; please report this",
              box.low()[kBatch], box.low()[kMaxQLen], box.low()[kMaxKvLen], first->name,
              seen_first == nullptr ? std::string("none") : seen_first->name);
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
