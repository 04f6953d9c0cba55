#include "selector/serves.h"

#include <algorithm>

#include "model/launch_limits.h"
#include "selector/reduction.h"

namespace cubist::selector {
namespace {

// One counter per CTA before the split. Source: the releases' counter area, 8192 * 256 int32.
constexpr std::int64_t kMaxCountedCtas = std::int64_t{8192} * 256;
constexpr std::int32_t kMaxCluster = 16;     // the non-portable limit
constexpr std::uint32_t kSystemSmem = 1024;  // the system's own first KiB of every block

bool types_fit(const KernelTraits& want, const KernelTraits& have) {
  return want.dtype_q == have.dtype_q && want.dtype_k == have.dtype_k &&
         want.dtype_v == have.dtype_v && want.dtype_o == have.dtype_o;
}

bool sage_fits(const KernelTraits& want, const KernelTraits& have) {
  return want.sage_block_q == have.sage_block_q && want.sage_block_k == have.sage_block_k &&
         want.sage_block_p == have.sage_block_p && want.sage_block_v == have.sage_block_v;
}

bool phase_fits(const Request& request, KernelType type) {
  if (!request.is_decode()) return type == KernelType::kContext;
  return type == KernelType::kSwapsMmaAbGeneration || type == KernelType::kKeepsMmaAbGeneration;
}

bool page_fits(const Request& request, const KernelTraits& traits) {
  if (!request.is_paged()) return traits.page_size == 0;
  // Sparse kernels read token indices: the cache's own pages do not matter.
  if (request.sparse) return traits.page_size == 1 && !traits.dynamic_page;
  if (!traits.dynamic_page) return traits.page_size == request.page_size;
  // These read whole boxes of 128 keys, so smaller pages are not for them.
  return traits.head_dim_qk == traits.head_dim_vo && request.page_size >= 128;
}

bool mask_fits(const Request& request, const KernelTraits& traits, HeuristicRevision revision) {
  const MaskType mask = traits.mask_type;
  const bool windowed = request.window_bites() || request.is_chunked();
  if (!request.is_decode()) {
    if (!request.causal) return mask == MaskType::kDense;
    return mask == (windowed ? MaskType::kSlidingOrChunked : MaskType::kCausal);
  }
  if (request.sparse) {
    // The same kernels; the older table calls them causal.
    return mask == (revision == HeuristicRevision::kTrtllmGenFmha_0_6_8 ? MaskType::kCausal
                                                                        : MaskType::kDense);
  }
  if (windowed) return mask == MaskType::kSlidingOrChunked;
  if (mask == MaskType::kCausal) return true;
  // One token to a CTA and a KV length shortened for that token make "dense" causal.
  return mask == MaskType::kDense && (!traits.groups_tokens_heads_q || request.max_q_len == 1);
}

bool head_groups_fit(const Request& request, const KernelTraits& traits) {
  if (!request.is_decode()) return true;
  if (!traits.groups_heads_q) return false;
  if (request.heads_per_kv <= traits.step_q) return true;  // spare rows are padding
  return request.heads_per_kv % traits.step_q == 0 && !traits.groups_tokens_heads_q;
}

bool two_cta_fits(const Request& request, const KernelTraits& traits) {
  if (!traits.two_cta_mma) return true;
  return request.num_q_heads == 128 && request.heads_per_kv == 128 && traits.tile_q == 64 &&
         traits.head_dim_per_cta_v * 2 == traits.head_dim_vo &&
         (traits.multi_ctas_kv_mode == MultiCtasKvMode::kOff ||
          traits.multi_ctas_kv_mode == MultiCtasKvMode::kSeparateReduction);
}

bool scheduler_fits(const Request& request, const KernelTraits& traits) {
  if (traits.multi_ctas_kv_mode == MultiCtasKvMode::kOff) return true;
  return traits.scheduler == TileScheduler::kStatic && request.is_decode();
}

bool within_grid_limits(const CtaGrid& grid) {
  return grid.x <= kMaxGridX && grid.y <= kMaxGridYz && grid.z <= kMaxGridYz &&
         grid.total() <= kMaxGridX;
}

/// Whether a tensor map can box rows of so many elements: it takes up to 128 bytes and 128 elements
/// of a row at once, in whole units of 32 bytes.
bool can_box_rows(Dtype dtype, std::uint32_t head_dim) {
  const std::uint32_t bits = dtype_bits(dtype);
  if (bits == 0) return false;
  const std::uint32_t elements = std::min({head_dim, 1024 / bits, 128U});
  return elements * bits % 256 == 0;
}

bool boxes_fit(const KernelTraits& traits) {
  // 32 bytes even of the narrowest type: nearly every kernel there is.
  if (traits.head_dim_qk % 64 == 0 && traits.head_dim_vo % 64 == 0) return true;
  return can_box_rows(traits.dtype_q, traits.head_dim_qk) &&
         can_box_rows(traits.dtype_k, traits.head_dim_qk) &&
         can_box_rows(traits.dtype_v, traits.head_dim_vo);
}

/// The grid with the kernel's own split, or the misfit that forbids it.
Misfit lay_out(const Request& request, const KernelTraits& traits, CtaGrid& grid) {
  switch (base_grid(request, traits, traits.two_cta_mma, grid)) {
    case GeometryFault::kNone:
      break;
    case GeometryFault::kHeadsPerCta:
      return Misfit::kHeadGroups;
    case GeometryFault::kHeadDimPerCta:
      return Misfit::kColumns;
    case GeometryFault::kTwoCtaShape:
      return Misfit::kTwoCta;
  }
  std::int32_t num_ctas_kv = 1;
  if (traits.multi_ctas_kv_mode != MultiCtasKvMode::kOff) {
    if (grid.total() > kMaxCountedCtas) return Misfit::kSplit;
    num_ctas_kv = split_count(request, traits, grid);
    if (traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory) {
      num_ctas_kv = std::min(num_ctas_kv, kMaxCluster);
    }
    if (num_ctas_kv < 2) return Misfit::kSplit;
  }
  apply_split(traits, num_ctas_kv, grid);
  return within_grid_limits(grid) ? Misfit::kNone : Misfit::kGridLimits;
}

Misfits trait_misfits(const Request& request, const KernelTraits& traits,
                      HeuristicRevision revision, bool all) {
  Misfits found;
  const KernelTraits& want = request.wanted;
  // True when the search is over.
  const auto note = [&](bool fits, Misfit misfit) {
    if (!fits) found.bits |= static_cast<std::uint32_t>(misfit);
    return !fits && !all;
  };
  if (note(types_fit(want, traits), Misfit::kTypes)) return found;
  if (note(want.head_dim_qk == traits.head_dim_qk && want.head_dim_vo == traits.head_dim_vo &&
               !traits.reuse_smem_k_for_v,
           Misfit::kHeadDims)) {
    return found;
  }
  if (note(want.qkv_layout == traits.qkv_layout, Misfit::kLayout)) return found;
  if (note(want.sparse_type == traits.sparse_type, Misfit::kSparse)) return found;
  if (note(page_fits(request, traits), Misfit::kPage)) return found;
  if (note(mask_fits(request, traits, revision), Misfit::kMask)) return found;
  if (note(phase_fits(request, traits.kernel_type), Misfit::kPhase)) return found;
  if (note(sage_fits(want, traits), Misfit::kSageBlocks)) return found;
  if (note(runs_on(traits.arch, request.sm), Misfit::kArch)) return found;
  if (note(request.skip_softmax || !traits.skip_softmax, Misfit::kSkipSoftmax)) return found;
  if (note(head_groups_fit(request, traits), Misfit::kHeadGroups)) return found;
  if (note(scheduler_fits(request, traits), Misfit::kScheduler)) return found;
  if (note(two_cta_fits(request, traits), Misfit::kTwoCta)) return found;
  if (note(
          traits.multi_ctas_kv_mode != MultiCtasKvMode::kClusterSharedMemory || !traits.two_cta_mma,
          Misfit::kTwoCta)) {
    return found;
  }
  if (note(traits.multi_ctas_kv_mode != MultiCtasKvMode::kSeparateReduction ||
               reduction_supports(traits),
           Misfit::kReduction)) {
    return found;
  }
  if (note(request.is_paged() || traits.dtype_o != Dtype::kE2m1, Misfit::kFp4Output)) return found;
  if (note(boxes_fit(traits), Misfit::kBoxRow)) return found;
  if (note(std::uint64_t{traits.smem} + kSystemSmem <= request.max_smem, Misfit::kSmem)) {
    return found;
  }
  return found;
}

}  // namespace

Misfits find_misfits(const Request& request, const KernelTraits& traits, HeuristicRevision revision,
                     bool all, CtaGrid& grid) {
  Misfits found = trait_misfits(request, traits, revision, all);
  if (found.none() || all) {
    found.bits |= static_cast<std::uint32_t>(lay_out(request, traits, grid));
  }
  return found;
}

bool serves_with_grid(const Request& request, const KernelTraits& traits,
                      HeuristicRevision revision, const CtaGrid& grid) {
  return trait_misfits(request, traits, revision, false).none() && within_grid_limits(grid);
}

std::string_view to_string(Misfit misfit) {
  switch (misfit) {
    case Misfit::kNone:
      return "none";
    case Misfit::kTypes:
      return "types";
    case Misfit::kSageBlocks:
      return "sage_blocks";
    case Misfit::kArch:
      return "sm";
    case Misfit::kLayout:
      return "qkv_layout";
    case Misfit::kPhase:
      return "phase";
    case Misfit::kHeadDims:
      return "head_dim";
    case Misfit::kColumns:
      return "head_dim_per_cta_v";
    case Misfit::kSparse:
      return "sparse_type";
    case Misfit::kPage:
      return "page_size";
    case Misfit::kMask:
      return "mask_type";
    case Misfit::kSkipSoftmax:
      return "skip_softmax";
    case Misfit::kHeadGroups:
      return "head_groups";
    case Misfit::kScheduler:
      return "scheduler";
    case Misfit::kSplit:
      return "split";
    case Misfit::kTwoCta:
      return "two_cta_mma";
    case Misfit::kReduction:
      return "reduction";
    case Misfit::kFp4Output:
      return "dtype_o";
    case Misfit::kSmem:
      return "smem";
    case Misfit::kGridLimits:
      return "grid";
    case Misfit::kBoxRow:
      return "head_dim";
    case Misfit::kBatchInvariant:
      return "batch_invariant";
  }
  return "unknown";
}

}  // namespace cubist::selector
