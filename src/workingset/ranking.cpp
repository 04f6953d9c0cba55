#include "workingset/ranking.h"

#include <algorithm>

#include "workingset/time_bounds.h"

namespace cubist::workingset {
namespace {

bool prepare_corners(const PackContext& context, const Box& box, CornerRequests& corners) {
  const DeviceProfile& device = context.query->device;
  for (std::size_t i = 0; i < kCorners; ++i) {
    if (const std::size_t same = box.first_alike(i); same != i) {
      corners[i] = corners[same];
      continue;
    }
    const AttentionProblem problem = problem_at(*context.problem, box.corner(i));
    if (!selector::prepare_request(problem, device, corners[i])) return false;
  }
  return true;
}

/// The one kernel whose bounds keep `first` and `second` apart least well decides where to cut.
Dimension where_to_cut(const Box& box, const KernelInBox& first, const KernelInBox& second) {
  for (const KernelInBox* kernel : {&first, &second}) {
    if (kernel->differs_in != kMaxKvLen && box.ranges[kernel->differs_in].size() > 1) {
      return kernel->differs_in;
    }
  }
  for (const Dimension d : {kMaxKvLen, kBatch, kMaxQLen}) {
    if (box.ranges[d].size() > 1) return d;
  }
  return kMaxKvLen;
}

/// Whether the first `count` of `all` are in this order everywhere, and before all others.
bool order_is_constant(const Box& box, const std::vector<KernelInBox>& all, std::size_t count,
                       Dimension& cut_at) {
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      if (always_before(all[i].bounds, all[j].bounds)) continue;
      cut_at = where_to_cut(box, all[i], all[j]);
      return false;
    }
    // Which answers let a plan through hangs on its cluster size.
    if (all[i].bounds.needs_clusters && !all[i].bounds.has_one_split()) {
      cut_at = where_to_cut(box, all[i], all[i]);
      return false;
    }
  }
  return true;
}

/// Up to the first kernel without a precondition.
std::size_t reachable(const std::vector<KernelInBox>& sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (!sorted[i].bounds.needs_clusters) return i + 1;
  }
  return sorted.size();
}

}  // namespace

BoxRanking rank_in_box(const PackContext& context, const Box& box) {
  BoxRanking ranking;
  CornerRequests corners;
  if (!prepare_corners(context, box, corners)) return ranking;
  // Masks hang on these two; everything else about serving is monotone.
  if (corners.front().window_bites() != corners.back().window_bites()) return ranking;
  if ((corners.front().max_q_len == 1) != (corners.back().max_q_len == 1)) {
    ranking.cut_at = kMaxQLen;
    return ranking;
  }
  const selector::PackTable& pack = *context.pack;
  std::vector<KernelInBox> all;
  for (const std::uint32_t index : pack.group_members(pack.find_group(corners[0].wanted))) {
    KernelInBox kernel =
        bound_kernel(corners, box, pack.pack().kernels[index], pack.pack().revision);
    if (kernel.mixed) {
      ranking.cut_at = kernel.differs_in;
      return ranking;
    }
    if (kernel.serves) all.push_back(kernel);
  }
  std::sort(all.begin(), all.end(), [](const KernelInBox& a, const KernelInBox& b) {
    return selector::ranks_before(a.bounds.kernel, b.bounds.kernel);
  });
  const std::size_t count = reachable(all);
  ranking.proved = order_is_constant(box, all, count, ranking.cut_at);
  if (!ranking.proved) return ranking;
  for (std::size_t i = 0; i < count; ++i) ranking.order.push_back(all[i].bounds.kernel.record);
  return ranking;
}

}  // namespace cubist::workingset
