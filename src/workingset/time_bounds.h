#pragma once

#include <array>
#include <cstdint>

#include "selector/fallback.h"
#include "selector/request.h"
#include "workingset/box.h"

namespace cubist::workingset {

/// A box's corners as requests, numbered as Box::corner does.
using CornerRequests = std::array<selector::Request, kCorners>;

/// The modelled time of one kernel over a box.
struct TimeBounds {
  selector::RankedKernel kernel;  ///< with the grid and time of the low corner
  bool needs_clusters = false;
  float least = 0;
  float most = 0;
  std::int32_t split_least = 1;  ///< num_ctas_kv
  std::int32_t split_most = 1;
  std::int64_t waves_least = 1;
  std::int64_t waves_most = 1;
  std::int64_t ctas_per_sequence = 1;  ///< before the split, at the low corner
  std::int64_t keys_least = 0;         ///< visible keys at the two ends of max_kv_len
  std::int64_t keys_most = 0;

  bool has_one_split() const { return split_least == split_most; }
};

/// How a kernel stands to a box.
struct KernelInBox {
  bool serves = false;               ///< at every corner
  bool mixed = false;                ///< at some corners only, or with other CTAs a sequence
  Dimension differs_in = kMaxKvLen;  ///< mixed, or bounds that are apart: a dimension to cut
  TimeBounds bounds;
};

KernelInBox bound_kernel(const CornerRequests& corners, const Box& box, const KernelRecord& record,
                         HeuristicRevision revision);

/// Whether `a` ranks before `b` at every point of the box.
bool always_before(const TimeBounds& a, const TimeBounds& b);

}  // namespace cubist::workingset
