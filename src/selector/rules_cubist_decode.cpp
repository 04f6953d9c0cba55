#include "selector/rules_cubist_decode.h"

#include <algorithm>
#include <array>

#include "model/launch_limits.h"
#include "selector/geometry.h"
#include "selector/select.h"

namespace cubist::selector {
namespace {

constexpr std::int32_t kMaxPageSize = 128;
// Pages a persistent kernel copies by boxes.
constexpr std::int32_t kMinBoxedPage = 16;

tl::unexpected<Error> unsupported(std::string_view what) {
  return fail(StatusCode::kUnsupported, "the cubist_decode kernels do not take {}", what);
}

bool is_persistent(const KernelRecord& record) {
  return record.traits.scheduler == TileScheduler::kPersistent;
}

/// Kernels of one group after another that may write the wanted type: those of that type, and of
/// the 16-bit types those that read it at run time.
template <class Visit>
void for_each_candidate(const PackTable& pack, const KernelTraits& wanted, Visit visit) {
  KernelTraits listed = wanted;
  const auto visit_group = [&](Dtype dtype_o) {
    listed.dtype_o = dtype_o;
    for (const std::uint32_t index : pack.group_members(pack.find_group(listed))) {
      visit(pack.pack().kernels[index]);
    }
  };
  visit_group(wanted.dtype_o);
  for (const Dtype dtype_o : {Dtype::kBf16, Dtype::kFp16}) {
    if (dtype_o != wanted.dtype_o) visit_group(dtype_o);
  }
}

DecodeOption option_of(const DecodeModel& model, const Request& request,
                       const KernelRecord& record) {
  const std::int32_t tile_q = record.traits.tile_q;
  DecodeOption option;
  option.record = &record;
  option.num_tokens_per_cta_q = std::max(1, tile_q / request.heads_per_kv);
  option.num_ctas_q =
      static_cast<std::int32_t>(ceil_div(request.max_q_len, option.num_tokens_per_cta_q));
  const std::int64_t columns = std::int64_t{option.num_ctas_q} * request.num_kv_heads *
                               ceil_div(request.heads_per_kv, tile_q);
  option.split = best_split(model, request, record.traits, columns);
  return option;
}

/// CTAs of the launch in X, the one direction that long queries overfill: Y counts heads, or groups
/// of at most the SMs, and Z sequences.
std::int64_t grid_x(const DecodeOption& option) {
  if (is_persistent(*option.record)) return option.split.columns;
  return std::int64_t{option.num_ctas_q} * option.split.num_ctas_kv;
}

bool is_within_grid(const DecodeOption& option) { return grid_x(option) <= kMaxGridX; }

/// Of the kernels that would serve were it not for their grid, the least grid_x(); 0: none would.
std::int64_t least_grid_x(const PackTable& pack, const Request& request) {
  const DecodeModel& model = decode_model_of(pack.pack());
  std::int64_t least = 0;
  for_each_candidate(pack, request.wanted, [&](const KernelRecord& record) {
    if (!cubist_decode_misfits(request, record.traits).none()) return;
    const std::int64_t x = grid_x(option_of(model, request, record));
    if (least == 0 || x < least) least = x;
  });
  return least;
}

// Rows of a tile of unequal query lengths where the longest of the batch must have no say.
constexpr std::int64_t kInvariantRows = 64;

/// True when `a` suits better than `b`, of one scheduler: the smallest tile that holds all rows,
/// else the largest; then the usual preference.
bool suits_better(const KernelRecord& a, const KernelRecord& b, std::int64_t rows) {
  const std::int32_t tile_a = a.traits.tile_q;
  const std::int32_t tile_b = b.traits.tile_q;
  const bool a_holds = tile_a >= rows;
  const bool b_holds = tile_b >= rows;
  if (a_holds != b_holds) return a_holds;
  if (tile_a != tile_b) return a_holds ? tile_a < tile_b : tile_a > tile_b;
  return is_preferred(a, b);
}

}  // namespace

std::int64_t tile_rows_of(const Request& request) {
  if (request.batch_invariant && request.varlen_q) return kInvariantRows;
  return std::int64_t{request.heads_per_kv} * request.max_q_len;
}

const DecodeModel& decode_model_of(const PackView& pack) {
  return pack.decode_model == nullptr ? shipped_decode_model() : *pack.decode_model;
}

void fill_decode_plan(const PackView& pack, const Request& request, const DecodeOption& option,
                      LaunchPlan& plan) {
  const KernelTraits& traits = option.record->traits;
  plan.record = option.record;
  plan.family = pack.family;
  plan.revision = pack.revision;
  plan.param_layout = pack.param_layout;
  plan.batch = request.batch;
  plan.num_heads_per_cta = std::min<std::int32_t>(request.heads_per_kv, traits.tile_q);
  plan.num_tokens_per_cta_q = option.num_tokens_per_cta_q;
  plan.num_ctas_q = option.num_ctas_q;
  plan.num_ctas_kv = option.split.num_ctas_kv;
  const auto x = static_cast<std::uint32_t>(grid_x(option));
  // A multiple; ceil_div takes the shorter division where it can.
  const std::int64_t columns = option.split.columns;
  if (is_persistent(*option.record)) {
    plan.grid = {x, static_cast<std::uint32_t>(option.split.num_ctas_kv), 1};
  } else {
    plan.grid = {x, static_cast<std::uint32_t>(ceil_div(columns, option.num_ctas_q)),
                 static_cast<std::uint32_t>(request.batch)};
  }
  plan.block = {traits.threads, 1, 1};
  plan.cluster = {1, 1, 1};
  plan.smem = traits.smem;
  plan.cluster_sched_policy = 0;
  plan.pdl = request.pdl;
  plan.reshape_factor_kv = 1;
  plan.min_active_clusters = 0;
  plan.fallback = FallbackReason::kNone;
}

Status check_entry_cubist_decode(const Request& request) {
  if (!request.is_decode()) return unsupported("phase context or ragged: decode only");
  if (request.sparse) return unsupported("a top-k: sparse_mla_topk must be 0");
  if (request.is_chunked()) return unsupported("chunked attention: chunk_size must be 0");
  if (request.skip_softmax) return unsupported("skip_softmax: leave it out");
  if (request.batch_invariant && request.is_mla) {
    return unsupported("MLA with batch_invariant: its kernels share the batch's keys out evenly");
  }
  if (!request.causal && request.max_q_len > 1) {
    return unsupported("dense masks over several query tokens: causal must be true");
  }
  if (!request.is_mla && request.wanted.head_dim_qk != request.wanted.head_dim_vo) {
    return fail(
        StatusCode::kUnsupported,
        "head_dim_qk is {} and head_dim_vo is {}; the cubist_decode kernels take unequal ones "
        "where is_mla is true: V is the beginning of K",
        request.wanted.head_dim_qk, request.wanted.head_dim_vo);
  }
  if (request.page_size > kMaxPageSize) {
    return fail(StatusCode::kUnsupported,
                "page_size is {}; the cubist_decode kernels take powers of two up to {}",
                request.page_size, kMaxPageSize);
  }
  return {};
}

Misfits cubist_decode_misfits(const Request& request, const KernelTraits& traits) {
  const KernelTraits& want = request.wanted;
  Misfits found;
  const auto note = [&](bool fits, Misfit misfit) {
    if (!fits) found.bits |= static_cast<std::uint32_t>(misfit);
  };
  note(want.dtype_q == traits.dtype_q && want.dtype_k == traits.dtype_k &&
           want.dtype_v == traits.dtype_v && writes(traits, want.dtype_o),
       Misfit::kTypes);
  note(want.head_dim_qk == traits.head_dim_qk && want.head_dim_vo == traits.head_dim_vo,
       Misfit::kHeadDims);
  note(traits.qkv_layout == want.qkv_layout && (request.is_mla || !traits.reuse_smem_k_for_v),
       Misfit::kLayout);
  note(traits.sparse_type == want.sparse_type, Misfit::kSparse);
  note(traits.dynamic_page ? request.page_size <= kMaxPageSize
                           : traits.page_size == request.page_size,
       Misfit::kPage);
  note(traits.mask_type == MaskType::kCausal && !request.is_chunked() &&
           (request.causal || request.max_q_len == 1),
       Misfit::kMask);
  note(request.is_decode() && traits.kernel_type != KernelType::kContext, Misfit::kPhase);
  note(traits.skip_softmax == want.skip_softmax, Misfit::kSkipSoftmax);
  note(runs_on(traits.arch, request.sm), Misfit::kArch);
  note(traits.smem <= request.max_smem, Misfit::kSmem);
  note(traits.scheduler == TileScheduler::kStatic || request.page_size >= kMinBoxedPage,
       Misfit::kPage);
  note(traits.scheduler == TileScheduler::kStatic || !request.batch_invariant,
       Misfit::kBatchInvariant);
  return found;
}

Misfits find_decode_misfits(const PackTable& pack, const Request& request,
                            const KernelRecord& record) {
  Misfits found = cubist_decode_misfits(request, record.traits);
  if (!is_within_grid(option_of(decode_model_of(pack.pack()), request, record))) {
    found.bits |= static_cast<std::uint32_t>(Misfit::kGridLimits);
  }
  return found;
}

std::array<DecodeOption, 2> decode_options(const PackTable& pack, const Request& request) {
  const std::int64_t rows = tile_rows_of(request);
  const DecodeModel& model = decode_model_of(pack.pack());
  const KernelRecord* of_static = nullptr;
  DecodeOption persistent;
  for_each_candidate(pack, request.wanted, [&](const KernelRecord& record) {
    if (!cubist_decode_misfits(request, record.traits).none()) return;
    if (!is_persistent(record)) {
      if (of_static == nullptr || suits_better(record, *of_static, rows)) of_static = &record;
      return;
    }
    const DecodeOption option = option_of(model, request, record);
    if (!is_within_grid(option)) return;
    const double us = option.split.microseconds;
    const double least = persistent.split.microseconds;
    if (persistent.record == nullptr || us < least ||
        (us == least && suits_better(record, *persistent.record, rows))) {
      persistent = option;
    }
  });
  if (of_static == nullptr) return {DecodeOption{}, persistent};
  // Looked at last: which tile a batch-invariant launch has must not hang on its longest query.
  const DecodeOption fixed = option_of(model, request, *of_static);
  return {is_within_grid(fixed) ? fixed : DecodeOption{}, persistent};
}

void answer_from_cubist_decode(const PackTable& pack, const Request& request, Selection& selection,
                               PackAnswer& answer) {
  const DecodeOption* best = nullptr;
  const std::array<DecodeOption, 2> options = decode_options(pack, request);
  for (const DecodeOption& option : options) {
    if (option.record == nullptr) continue;
    if (best == nullptr || option.split.microseconds < best->split.microseconds) best = &option;
  }
  if (best == nullptr) {
    answer.wanted = request.wanted;
    answer.grid_x = least_grid_x(pack, request);
    answer.refusal = answer.grid_x > 0 ? RuleRefusal::kGridLimits : RuleRefusal::kNoKernel;
    return;
  }
  fill_decode_plan(pack.pack(), request, *best, selection.plans[0]);
  selection.num_plans = 1;
}

}  // namespace cubist::selector
