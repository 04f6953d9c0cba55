#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "selector/geometry.h"
#include "selector/kernel_table.h"
#include "selector/request.h"

namespace cubist::selector {

/// Switches a caller may turn; the defaults are what the published runtime does.
struct RuleOptions {
  /// Ask the cost model for one query token too, as the seeds' change did. Never changes a choice.
  bool cost_model_always = false;
  /// MLA with spare SMs takes tile_kv 64 (the published runtime's
  /// TRTLLM_GEN_ENABLE_TILE_SIZE_KV64).
  bool enable_tile_kv64 = false;
};

/// Why a revision's rules end without a kernel.
enum class RuleRefusal : std::uint8_t {
  kNone,
  kNoKernel,          ///< the kernel they ask for is not in the pack
  kTileNotBuildable,  ///< they ask for a tile_q that is no power of two up to 128
  kHeadsPerCta,       ///< a CTA's heads do not divide the query heads
  kHeadDimPerCta,     ///< a CTA's columns do not divide head_dim_vo
  kTwoCtaShape,       ///< 2-CTA MMA without two head CTAs and two column CTAs
  kWindowedMla,       ///< the window is shorter than the KV of a dense MLA call
  kNotConverged,      ///< four passes and still a change wanted
  kContextMask,       ///< a mask this revision has no request for
  kReduction,         ///< the separate reduction cannot run this shape
  kSplitsHeadGroups,  ///< a CTA would hold heads of two KV groups
  kNotServed,         ///< the rules' choice does not serve the problem (see serves.h)
  kGridLimits,        ///< more CTAs than a grid can hold
};

/// Why a pass asked for another one.
enum class Reselection : std::uint8_t {
  kNone,
  kSplitOff,
  kTileKv64,
  kClusterReduction,
  kFewerColumnsPerCta,
};

/// What one tile_q of the cost model would cost.
struct CandidateNote {
  const KernelRecord* record = nullptr;
  CtaGrid grid;
  std::int64_t waves = 0;
  float time = 0;
  bool chosen = false;
};

/// One pass over the rules: what was asked for, what was found, why it was not the last.
struct PassNote {
  KernelTraits wanted;
  const KernelRecord* record = nullptr;
  CtaGrid grid;
  std::int32_t default_tile_q = 0;
  bool asked_cost_model = false;
  bool forced_global_memory = false;
  Reselection reselection = Reselection::kNone;
  std::vector<CandidateNote> candidates;
};

/// Notes for explain; selection itself passes none.
struct RuleTrace {
  std::vector<PassNote> passes;
};

/// One kernel with its grid, or why there is none.
struct RuleChoice {
  RuleRefusal refusal = RuleRefusal::kNoKernel;
  const KernelRecord* record = nullptr;
  CtaGrid grid;
  KernelTraits wanted;  ///< what was looked up last; set when refused
};

/// What a revision's rules answer. `sibling`: for a choice that reduces through cluster memory,
/// what they take instead where too few clusters fit at once.
struct RuleResult {
  RuleChoice choice;
  bool has_sibling = false;
  RuleChoice sibling;
};

// The trtllm-gen rule sets: docs/design/selection.md. `check_*` refuses what the release's entry
// points refuse before they look for a kernel, `choose_*` runs the passes. Pure, and without
// allocation unless a check fails or `trace` is given.

Status check_entry_0_6_13(const Request& request);
RuleResult choose_0_6_13(const PackTable& table, const Request& request, const RuleOptions& options,
                         RuleTrace* trace);

Status check_entry_0_6_8(const Request& request);
RuleResult choose_0_6_8(const PackTable& table, const Request& request, const RuleOptions& options,
                        RuleTrace* trace);

}  // namespace cubist::selector
