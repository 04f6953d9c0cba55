#pragma once

#include <cstdint>
#include <string_view>

#include "model/kernel_record.h"
#include "selector/geometry.h"
#include "selector/request.h"

namespace cubist::selector {

/// What keeps a trtllm-gen kernel from serving a problem; one bit each.
enum class Misfit : std::uint32_t {
  kNone = 0,
  kTypes = 1U << 0,       ///< element types
  kSageBlocks = 1U << 1,  ///< SageAttention block sizes
  kArch = 1U << 2,        ///< the cubin does not run on the device
  kLayout = 1U << 3,      ///< ragged or paged
  kPhase = 1U << 4,       ///< context or generation kernel
  kHeadDims = 1U << 5,    ///< head_dim_qk, head_dim_vo
  kColumns = 1U << 6,     ///< head_dim_per_cta_v does not divide head_dim_vo
  kSparse = 1U << 7,      ///< sparse type
  kPage = 1U << 8,        ///< page size
  kMask = 1U << 9,
  kSkipSoftmax = 1U << 10,     ///< skips softmax though nobody asked
  kHeadGroups = 1U << 11,      ///< a CTA would hold heads of two KV groups
  kScheduler = 1U << 12,       ///< split with a persistent scheduler, or in a context kernel
  kSplit = 1U << 13,           ///< fewer than two CTAs per KV sequence, or too many
  kTwoCta = 1U << 14,          ///< 2-CTA MMA without 128 heads on one KV head
  kReduction = 1U << 15,       ///< the separate reduction has no such tile, size or type
  kFp4Output = 1U << 16,       ///< e2m1 output where no scale tensor is passed
  kSmem = 1U << 17,            ///< more shared memory than the device gives a block
  kGridLimits = 1U << 18,      ///< beyond what a launch can hold
  kBoxRow = 1U << 19,          ///< rows of a tensor that no tensor map can box
  kBatchInvariant = 1U << 20,  ///< the batch decides how a sequence's keys are shared out
};

/// Misfits of one kernel, together.
struct Misfits {
  std::uint32_t bits = 0;
  bool none() const { return bits == 0; }
  bool has(Misfit misfit) const { return (bits & static_cast<std::uint32_t>(misfit)) != 0; }
};

/// Whether launching a kernel with these traits gives the right answer, whatever a heuristic would
/// prefer, and the grid it would have. Stops at the first misfit unless `all`. A cluster's
/// occupancy is not looked at. Rules and their evidence: docs/design/selection.md, "What serves
/// means".
/// `grid` is written when the kernel serves.
Misfits find_misfits(const Request& request, const KernelTraits& traits, HeuristicRevision revision,
                     bool all, CtaGrid& grid);

/// The same for a kernel whose grid is known already: its traits and the limits of a launch.
bool serves_with_grid(const Request& request, const KernelTraits& traits,
                      HeuristicRevision revision, const CtaGrid& grid);

/// "page size", "mask", ...: the field or rule, for messages. One bit only.
std::string_view to_string(Misfit misfit);

}  // namespace cubist::selector
