#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// How the workspace of a cubist_decode launch is carved, each piece aligned to 256 bytes:
///
///   | counters int32 [tiles] | partial stats float2 [tiles][num_ctas_kv][tile_q]
///                            | partial O float [tiles][num_ctas_kv][tile_q][head_dim] |
///
/// A tile is the rows of one CTA among all of the launch: num_ctas_q * grid.y * grid.z of them.
/// The counters must be zero before the first launch, and every launch leaves them zero. Their
/// piece has the same size for every launch of up to kCountedTiles tiles, so that launches of
/// different problems may use one workspace in turn. Nothing is needed where num_ctas_kv is 1.
///
/// Persistent kernels have a counter (MLA: four) for each sequence, column and warpgroup that
/// shares the rows, 64, or the columns of O, 256; and instead of statistics and O the sums of two
/// parts a CTA (kernels/decode/README.md):
///
///   | counters int32 [batch][grid.x][halves]
///                            | sums float [grid.y][grid.x][2][halves][columns / 2 + 4][128] |
struct DecodeWorkspace {
  std::uint64_t counters_size = 0;  ///< bytes, from the start: what must be zero
  std::uint64_t partial_stats_offset = 0;
  std::uint64_t partial_o_offset = 0;
  std::uint64_t size = 0;  ///< bytes of all
};

inline constexpr std::uint64_t kWorkspaceAlignment = 256;
/// A launch is split over CTAs while its tiles do not fill the GPU, so this is ample.
inline constexpr std::uint64_t kCountedTiles = 16384;

/// errors  kInvalidArgument: the sizes do not fit 63 bits
Result<DecodeWorkspace> decode_workspace(const LaunchPlan& plan);

/// At least what every split launch of a kernel needs, piece by piece.
///
/// max_ctas   selector::max_split_ctas: tiles times splits, or a persistent launch's CTAs
/// max_batch  sequences
/// errors     as above
Result<DecodeWorkspace> decode_workspace_bound(const KernelTraits& traits, std::int64_t max_ctas,
                                               std::int32_t max_batch);

}  // namespace cubist::launcher
