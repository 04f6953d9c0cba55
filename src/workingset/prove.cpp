#include "workingset/prove.h"

#include <algorithm>

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

/// Across which dimensions some pair of corners decides otherwise.
std::array<bool, kDimensions> find_differences(const std::array<PackFacts, kCorners>& corners,
                                               bool compare_splits) {
  std::array<bool, kDimensions> differs{};
  for (std::size_t corner = 0; corner < kCorners; ++corner) {
    for (std::size_t d = 0; d < kDimensions; ++d) {
      const std::size_t other = corner ^ (std::size_t{1} << d);
      if (other < corner || differs[d]) continue;
      differs[d] = !decide_alike(corners[corner], corners[other], compare_splits);
    }
  }
  return differs;
}

/// Ends at which a class's boxes are cut from the start.
struct Cuts {
  std::array<std::vector<std::int32_t>, kDimensions> ends;

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

}  // namespace

std::array<Box, 2> halves(const Box& box, Dimension dimension) {
  std::array<Box, 2> both = {box, box};
  both[0].ranges[dimension].last = middle(box.ranges[dimension], dimension);
  both[1].ranges[dimension].first = both[0].ranges[dimension].last + 1;
  return both;
}

double size_of(const Box& box) {
  double size = 1;
  for (const Range& range : box.ranges) size *= static_cast<double>(range.size());
  return size;
}

std::vector<Box> boxes_of(const ProblemClass& cls, const std::vector<const Query*>& queries) {
  Cuts cuts;
  if (cls.problem.window_left >= 0 && cls.problem.window_left < INT32_MAX) {
    cuts.add({cls.problem.window_left + 1}, kMaxKvLen);
  }
  for (const Query* query : queries) {
    if (query->overrides == nullptr) continue;
    cuts.add(query->overrides->ends_in("batch"), kBatch);
    cuts.add(query->overrides->ends_in("max_q_len"), kMaxQLen);
    cuts.add(query->overrides->ends_in("max_kv_len"), kMaxKvLen);
  }
  const Query& query = *queries.front();
  std::vector<Box> boxes;
  for (const Range& batch : cuts.apply(query.batch, kBatch)) {
    for (const Range& max_q_len : cuts.apply(query.max_q_len, kMaxQLen)) {
      for (const Range& max_kv_len : cuts.apply(query.max_kv_len, kMaxKvLen)) {
        boxes.push_back(Box{{batch, max_q_len, max_kv_len}});
      }
    }
  }
  return boxes;
}

bool BoxProver::corners_agree(const PackContext& context, const Box& box, BoxDecision& decision) {
  std::array<PackFacts, kCorners> corners;
  for (std::size_t corner = 0; corner < kCorners; ++corner) {
    if (const std::size_t same = box.first_alike(corner); same != corner) {
      corners[corner] = corners[same];
      continue;
    }
    ++points_;
    corners[corner] = find_facts(context, box.corner(corner));
  }
  const bool choice_without_sibling =
      corners[0].chosen[0] != nullptr && corners[0].refusal != selector::RuleRefusal::kNone;
  const auto differs =
      find_differences(corners, query_.rules.enable_tile_kv64 || choice_without_sibling);
  decision.facts = std::move(corners[0]);
  if (std::any_of(differs.begin(), differs.end(), [](bool on) { return on; })) {
    decision.cut_at = widest(box, differs);
    return false;
  }
  decision.cut_at = kMaxKvLen;
  return choice_is_constant(decision.facts, corners[std::size_t{1} << kMaxKvLen]);
}

BoxDecision BoxProver::decide_for(const selector::PackTable& pack, const Box& box) {
  using Kind = BoxDecision::Kind;
  const PackContext context{&pack, &query_, &problem_};
  BoxDecision decision;
  decision.pack = &pack;
  decision.kind = Kind::kUndecided;
  if (!corners_agree(context, box, decision)) return decision;
  if (decision.facts.entry_refused) {
    decision.kind = Kind::kGap;
    return decision;
  }
  const bool refused = decision.facts.refusal != selector::RuleRefusal::kNone;
  if (refused && !query_.strict && pack.pack().family == KernelFamily::kTrtllmGenFmha) {
    BoxRanking ranking = rank_in_box(context, box);
    if (!ranking.proved) {
      decision.cut_at = ranking.cut_at;
      return decision;
    }
    decision.order = std::move(ranking.order);
  }
  const bool answers = decision.facts.chosen[0] != nullptr || !decision.order.empty();
  decision.kind = answers ? Kind::kAnswers : Kind::kGap;
  return decision;
}

BoxDecision BoxProver::decide(const Box& box) {
  for (const selector::PackTable& pack : table_.packs()) {
    if (!selector::pack_fits_device(pack, query_.device.sm)) continue;
    BoxDecision decision = decide_for(pack, box);
    if (decision.kind != BoxDecision::Kind::kGap) return decision;
  }
  return {};
}

}  // namespace cubist::workingset
