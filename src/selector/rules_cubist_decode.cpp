#include "selector/rules_cubist_decode.h"

#include <algorithm>

#include "selector/geometry.h"
#include "selector/select.h"

namespace cubist::selector {
namespace {

constexpr std::int32_t kMaxPageSize = 128;
// A CTA gets at least this many keys of a split sequence, and a sequence at most this many CTAs:
// the partial results of more cost more than they save.
constexpr std::int64_t kMinKeysPerCta = 256;
constexpr std::int64_t kMaxCtasPerKv = 64;

tl::unexpected<Error> unsupported(std::string_view what) {
  return fail(StatusCode::kUnsupported, "the cubist_decode kernels do not take {}", what);
}

/// Positive when `a` suits `rows` better than `b`: the smallest tile that holds all rows, else the
/// largest; then the usual preference.
bool suits_better(const KernelRecord& a, const KernelRecord& b, std::int64_t rows) {
  const bool a_holds = a.traits.tile_q >= rows;
  const bool b_holds = b.traits.tile_q >= rows;
  if (a_holds != b_holds) return a_holds;
  if (a.traits.tile_q != b.traits.tile_q) {
    return a_holds ? a.traits.tile_q < b.traits.tile_q : a.traits.tile_q > b.traits.tile_q;
  }
  return is_preferred(a, b);
}

void fill_decode_plan(const PackView& pack, const Request& request, const KernelRecord& record,
                      LaunchPlan& plan) {
  const std::int32_t tile_q = record.traits.tile_q;
  const std::int32_t group = request.heads_per_kv;
  plan.record = &record;
  plan.family = pack.family;
  plan.revision = pack.revision;
  plan.param_layout = pack.param_layout;
  plan.num_heads_per_cta = std::min(group, tile_q);
  plan.num_tokens_per_cta_q = std::max(1, tile_q / group);
  plan.num_ctas_q =
      static_cast<std::int32_t>(ceil_div(request.max_q_len, plan.num_tokens_per_cta_q));
  const std::int64_t head_ctas = request.num_kv_heads * ceil_div(group, tile_q);
  const std::int64_t base = plan.num_ctas_q * head_ctas * request.batch;
  const std::int64_t split =
      std::min<std::int64_t>(ceil_div(request.max_kv_len, kMinKeysPerCta), request.num_sms / base);
  plan.num_ctas_kv = static_cast<std::int32_t>(std::clamp<std::int64_t>(split, 1, kMaxCtasPerKv));
  plan.grid = {static_cast<std::uint32_t>(std::int64_t{plan.num_ctas_q} * plan.num_ctas_kv),
               static_cast<std::uint32_t>(head_ctas), static_cast<std::uint32_t>(request.batch)};
  plan.block = {record.traits.threads, 1, 1};
  plan.cluster = {1, 1, 1};
  plan.smem = record.traits.smem;
  plan.cluster_sched_policy = 0;
  plan.pdl = request.pdl;
  plan.reshape_factor_kv = 1;
  plan.min_active_clusters = 0;
  plan.fallback = FallbackReason::kNone;
}

}  // namespace

Status check_entry_cubist_decode(const Request& request) {
  if (!request.is_decode()) return unsupported("phase context or ragged: decode only");
  if (request.sparse) return unsupported("a top-k: sparse_mla_topk must be 0");
  if (request.is_chunked()) return unsupported("chunked attention: chunk_size must be 0");
  if (request.skip_softmax) return unsupported("skip_softmax: leave it out");
  if (!request.causal && request.max_q_len > 1) {
    return unsupported("dense masks over several query tokens: causal must be true");
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
           want.dtype_v == traits.dtype_v && want.dtype_o == traits.dtype_o,
       Misfit::kTypes);
  note(want.head_dim_qk == traits.head_dim_qk && want.head_dim_vo == traits.head_dim_vo,
       Misfit::kHeadDims);
  note(traits.qkv_layout == want.qkv_layout, Misfit::kLayout);
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
  return found;
}

void answer_from_cubist_decode(const PackTable& pack, const Request& request, Selection& selection,
                               PackAnswer& answer) {
  const std::int64_t rows = std::int64_t{request.heads_per_kv} * request.max_q_len;
  const KernelRecord* best = nullptr;
  for (const std::uint32_t index : pack.group_members(pack.find_group(request.wanted))) {
    const KernelRecord& record = pack.pack().kernels[index];
    if (!cubist_decode_misfits(request, record.traits).none()) continue;
    if (best == nullptr || suits_better(record, *best, rows)) best = &record;
  }
  if (best == nullptr) {
    answer.refusal = RuleRefusal::kNoKernel;
    answer.wanted = request.wanted;
    return;
  }
  fill_decode_plan(pack.pack(), request, *best, selection.plans[0]);
  selection.num_plans = 1;
}

}  // namespace cubist::selector
