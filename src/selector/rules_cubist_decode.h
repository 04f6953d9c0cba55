#pragma once

#include <array>

#include "base/result.h"
#include "model/launch_plan.h"
#include "selector/decode_costs.h"
#include "selector/kernel_table.h"
#include "selector/request.h"
#include "selector/serves.h"

namespace cubist::selector {

struct PackAnswer;

/// Rules of the cubist_decode kernels, revision cubist-decode-1: paged decode of equal head sizes,
/// or MLA with one copy of the cache, with tokens and heads grouped in one tile.
///
/// A kernel serves when types and head size are its own, the cubin runs on the device, the page is
/// a power of two up to 128 and the mask is causal (a window is a parameter; dense is causal for
/// one query token); a persistent kernel wants pages of 16 or more. Of the static ones the smallest
/// tile_q that holds all heads_per_kv * max_q_len rows is taken, the largest where none does; among
/// it and the persistent ones a model of their time decides. Strict or not is the same: nothing is
/// asked for that is not there. A launch that no grid can hold is refused.
///
/// batch_invariant: a static kernel, whose tile and split hang on nothing that changes from batch
/// to batch (tile_rows_of, invariant_split).
Status check_entry_cubist_decode(const Request& request);

void answer_from_cubist_decode(const PackTable& pack, const Request& request, Selection& selection,
                               PackAnswer& answer);

/// The best kernel of one scheduler and how it would be launched; `record` null: none serves.
struct DecodeOption {
  const KernelRecord* record = nullptr;
  std::int32_t num_tokens_per_cta_q = 1;
  std::int32_t num_ctas_q = 1;
  DecodeSplit split;
};

/// Rows by which a static kernel's tile is chosen: heads_per_kv * max_q_len; batch-invariant with
/// unequal query lengths, always 64.
std::int64_t tile_rows_of(const Request& request);

/// That of the pack, else the shipped one.
const DecodeModel& decode_model_of(const PackView& pack);

/// Static, then persistent; the one of less modelled time is the rules' choice. None is beyond what
/// a grid can hold.
std::array<DecodeOption, 2> decode_options(const PackTable& pack, const Request& request);

/// The launch of an option, whose split may be another than the model's. `plan` may hold an older
/// one.
void fill_decode_plan(const PackView& pack, const Request& request, const DecodeOption& option,
                      LaunchPlan& plan);

/// What in its traits keeps a kernel of this family from serving the request.
Misfits cubist_decode_misfits(const Request& request, const KernelTraits& traits);

/// The same, and whether a grid can hold its launch.
Misfits find_decode_misfits(const PackTable& pack, const Request& request,
                            const KernelRecord& record);

}  // namespace cubist::selector
