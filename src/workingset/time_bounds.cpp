#include "workingset/time_bounds.h"

#include <algorithm>

#include "selector/cost_model.h"
#include "selector/geometry.h"
#include "selector/serves.h"

namespace cubist::workingset {
namespace {

using selector::CtaGrid;
using selector::Request;
using Grids = std::array<CtaGrid, kCorners>;

// Far above what float32 loses in a modelled time (four roundings, 2.4e-7), far below any
// difference that decides over more than a point.
constexpr double kRoundingMargin = 2e-6;

/// modelled_time with its three uses of the split apart, so that each can be taken at its own end.
float time_of(std::int64_t keys, const KernelTraits& traits, std::int64_t waves,
              std::int32_t keys_split, std::int32_t combine_split) {
  const std::int64_t walked =
      selector::ceil_div(selector::ceil_div(keys, traits.step_kv), keys_split) * traits.step_kv;
  const selector::TileCost cost = selector::tile_cost(traits.tile_q);
  return static_cast<float>(waves) * (cost.per_key * static_cast<float>(walked) +
                                      cost.per_split * 128.0F * static_cast<float>(combine_split));
}

/// The first dimension across which `same` is false for some pair of corners.
template <class Same>
bool find_difference(const Box& box, Same same, Dimension& out) {
  for (const Dimension d : {kMaxQLen, kBatch, kMaxKvLen}) {
    if (box.ranges[d].size() == 1) continue;
    for (std::size_t corner = 0; corner < kCorners; ++corner) {
      const std::size_t other = corner ^ (std::size_t{1} << d);
      if (other < corner || same(corner, other)) continue;
      out = d;
      return true;
    }
  }
  return false;
}

/// Whether another point of the box may serve where this one does not; masks are the same in it.
bool hangs_on_lengths(const selector::Misfits& misfits) {
  return misfits.none() || misfits.has(selector::Misfit::kSplit) ||
         misfits.has(selector::Misfit::kGridLimits);
}

std::int64_t ctas_per_sequence(const CtaGrid& grid) {
  return grid.total() / grid.num_ctas_kv / grid.z;
}

void fill_bounds(const CornerRequests& corners, const Grids& grids, const KernelRecord& record,
                 TimeBounds& out) {
  const KernelTraits& traits = record.traits;
  const std::int32_t num_sms = corners[0].num_sms;
  out.kernel.record = &record;
  out.kernel.relaxations = corners[0].skip_softmax && !traits.skip_softmax ? 1 : 0;
  out.kernel.grid = grids[0];
  out.needs_clusters = traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory;
  out.ctas_per_sequence = ctas_per_sequence(grids[0]);
  out.split_least = out.split_most = grids[0].num_ctas_kv;
  for (const CtaGrid& grid : grids) {
    out.split_least = std::min(out.split_least, grid.num_ctas_kv);
    out.split_most = std::max(out.split_most, grid.num_ctas_kv);
  }
  const auto waves = [&](std::int32_t batch, std::int32_t split) {
    return selector::ceil_div(out.ctas_per_sequence * batch * split, num_sms);
  };
  out.waves_least = waves(corners.front().batch, out.split_least);
  out.waves_most = waves(corners.back().batch, out.split_most);
  out.keys_least = selector::visible_kv_len(corners.front(), traits);
  out.keys_most = selector::visible_kv_len(corners.back(), traits);
  out.least = time_of(out.keys_least, traits, out.waves_least, out.split_most, out.split_least);
  out.most = time_of(out.keys_most, traits, out.waves_most, out.split_least, out.split_most);
  out.kernel.time =
      selector::modelled_time(out.keys_least, num_sms, traits.tile_q, traits.step_kv, grids[0]);
}

/// Whether both kernels see the same keys at every point.
bool see_the_same(const KernelTraits& a, const KernelTraits& b) {
  const bool windowed = a.mask_type == MaskType::kSlidingOrChunked;
  if (windowed != (b.mask_type == MaskType::kSlidingOrChunked)) return false;
  return !windowed || a.step_kv == b.step_kv;
}

/// Whether two kernels' times are the same function in the box, not only near each other.
bool have_the_same_time(const TimeBounds& a, const TimeBounds& b) {
  const KernelTraits& s = a.kernel.record->traits;
  const KernelTraits& t = b.kernel.record->traits;
  return s.tile_q == t.tile_q && s.step_kv == t.step_kv && see_the_same(s, t) &&
         a.ctas_per_sequence == b.ctas_per_sequence && a.has_one_split() && b.has_one_split() &&
         a.split_least == b.split_least;
}

/// Bounds that are straight lines in the keys, so that both ends of the box decide: a CTA of a
/// kernel with one split walks through keys / split keys, and less than one step more.
bool line_before(const TimeBounds& a, const TimeBounds& b) {
  const KernelTraits& s = a.kernel.record->traits;
  const KernelTraits& t = b.kernel.record->traits;
  if (!a.has_one_split() || !b.has_one_split() || !see_the_same(s, t)) return false;
  const bool same_split = a.split_least == b.split_least;
  // Equal CTAs have equal waves at every point: then waves do not matter.
  const bool same_waves = same_split && a.ctas_per_sequence == b.ctas_per_sequence;
  const bool same_walk = same_split && s.step_kv == t.step_kv;
  const auto waves_a = same_waves ? 1.0 : static_cast<double>(a.waves_most);
  const auto waves_b = same_waves ? 1.0 : static_cast<double>(b.waves_least);
  const auto line = [](const TimeBounds& r, double waves, double keys) {
    const selector::TileCost cost = selector::tile_cost(r.kernel.record->traits.tile_q);
    return waves * (static_cast<double>(cost.per_key) * keys +
                    static_cast<double>(cost.per_split) * 128.0 * r.split_least);
  };
  for (const auto& [keys_a, keys_b] :
       {std::pair(a.keys_least, b.keys_least), std::pair(a.keys_most, b.keys_most)}) {
    double walk_a = static_cast<double>(keys_a) / a.split_least;
    double walk_b = static_cast<double>(keys_b) / b.split_least;
    if (same_walk) {
      // The same number for both, somewhere in these bounds; a line decides at both ends.
      walk_b = walk_a;
    } else {
      walk_a += s.step_kv;
    }
    const double more = same_walk ? s.step_kv : 0;
    for (const double extra : {0.0, more}) {
      if (!(line(a, waves_a, walk_a + extra) * (1 + kRoundingMargin) <
            line(b, waves_b, walk_b + extra))) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

KernelInBox bound_kernel(const CornerRequests& corners, const Box& box, const KernelRecord& record,
                         HeuristicRevision revision) {
  KernelInBox found;
  Grids grids;
  std::array<bool, kCorners> serving{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < kCorners; ++i) {
    const std::size_t same = box.first_alike(i);
    if (same != i) {
      grids[i] = grids[same];
      serving[i] = serving[same];
    } else {
      const selector::Misfits misfits =
          selector::find_misfits(corners[i], record.traits, revision, false, grids[i]);
      serving[i] = misfits.none();
      if (!hangs_on_lengths(misfits)) return found;
    }
    if (serving[i]) ++count;
  }
  if (count == 0) return found;
  found.mixed = find_difference(
      box, [&](std::size_t a, std::size_t b) { return serving[a] == serving[b]; },
      found.differs_in);
  if (found.mixed) return found;
  found.mixed = find_difference(
      box,
      [&](std::size_t a, std::size_t b) {
        return ctas_per_sequence(grids[a]) == ctas_per_sequence(grids[b]);
      },
      found.differs_in);
  if (found.mixed) return found;
  found.serves = true;
  fill_bounds(corners, grids, record, found.bounds);
  find_difference(
      box,
      [&](std::size_t a, std::size_t b) {
        return grids[a].num_ctas_kv == grids[b].num_ctas_kv &&
               selector::wave_count(grids[a], corners[a].num_sms) ==
                   selector::wave_count(grids[b], corners[b].num_sms);
      },
      found.differs_in);
  return found;
}

bool always_before(const TimeBounds& a, const TimeBounds& b) {
  if (a.kernel.relaxations != b.kernel.relaxations) {
    return a.kernel.relaxations < b.kernel.relaxations;
  }
  if (a.most < b.least) return true;
  const bool fixed = (a.least == a.most && b.least == b.most) || have_the_same_time(a, b);
  if (fixed) return selector::ranks_before(a.kernel, b.kernel);
  return line_before(a, b);
}

}  // namespace cubist::workingset
