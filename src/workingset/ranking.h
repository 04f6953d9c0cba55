#pragma once

#include <vector>

#include "workingset/facts.h"

namespace cubist::workingset {

/// What the fallback of one pack does in a box whose rules decide alike everywhere.
struct BoxRanking {
  bool proved = false;
  Dimension cut_at = kMaxKvLen;  ///< not proved: where cutting the box helps
  /// Kernels in the order in which they are tried, the last without a precondition on clusters (or
  /// all with one, where no other serves); empty: nothing serves.
  std::vector<const KernelRecord*> order;
};

/// Proves the order of the kernels that serve, as far as selection can get down it.
BoxRanking rank_in_box(const PackContext& context, const Box& box);

}  // namespace cubist::workingset
