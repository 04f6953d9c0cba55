#pragma once

#include <vector>

#include "selector/kernel_table.h"
#include "workingset/facts.h"

namespace cubist::workingset {

/// What selection does in a box.
struct BoxDecision {
  enum class Kind {
    kAnswers,    ///< the same kernels everywhere
    kGap,        ///< no kernel anywhere
    kUndecided,  ///< not proved: cut the box
  };
  Kind kind = Kind::kGap;
  Dimension cut_at = kMaxKvLen;               ///< kUndecided: across what
  const selector::PackTable* pack = nullptr;  ///< kAnswers: whose kernels
  PackFacts facts;                            ///< kAnswers: what its rules did
  std::vector<const KernelRecord*> order;     ///< kAnswers: what the fallback tries, in order

  /// kAnswers: the first plan's kernel when nothing is known about clusters.
  const KernelRecord* first() const {
    return facts.chosen[0] != nullptr ? facts.chosen[0] : order.front();
  }
};

/// Proves boxes of one class against one table. Borrows everything it is given.
class BoxProver {
 public:
  BoxProver(const selector::KernelTable& table, const Query& query, const AttentionProblem& problem)
      : table_(table), query_(query), problem_(problem) {}

  BoxDecision decide(const Box& box);
  std::uint64_t points() const { return points_; }  ///< looked at so far

 private:
  BoxDecision decide_for(const selector::PackTable& pack, const Box& box);
  bool corners_agree(const PackContext& context, const Box& box, BoxDecision& decision);

  const selector::KernelTable& table_;
  const Query& query_;
  const AttentionProblem& problem_;
  std::uint64_t points_ = 0;
};

/// Both halves of a box, cut across a dimension of at least two values.
std::array<Box, 2> halves(const Box& box, Dimension dimension);

/// Problems in a box.
double size_of(const Box& box);

/// The boxes of a class's ranges, cut where its window begins to hide keys and where an override
/// rule of `queries` begins or ceases to apply.
std::vector<Box> boxes_of(const ProblemClass& cls, const std::vector<const Query*>& queries);

}  // namespace cubist::workingset
