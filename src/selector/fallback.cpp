#include "selector/fallback.h"

#include "selector/cost_model.h"
#include "selector/serves.h"

namespace cubist::selector {
namespace {

bool needs_clusters(const RankedKernel& kernel) {
  return kernel.record->traits.multi_ctas_kv_mode == MultiCtasKvMode::kClusterSharedMemory;
}

/// Inserts in order; drops what falls off the end.
void insert(RankedKernels& list, const RankedKernel& kernel) {
  std::uint32_t at = list.count < RankedKernels::kMax ? list.count : RankedKernels::kMax;
  while (at > 0 && ranks_before(kernel, list.kernels[at - 1])) --at;
  if (at == RankedKernels::kMax) return;
  const std::uint32_t last =
      list.count < RankedKernels::kMax ? list.count : RankedKernels::kMax - 1;
  for (std::uint32_t i = last; i > at; --i) list.kernels[i] = list.kernels[i - 1];
  list.kernels[at] = kernel;
  if (list.count < RankedKernels::kMax) ++list.count;
}

}  // namespace

bool rank_kernel(const PackTable& table, const Request& request, const KernelRecord& record,
                 RankedKernel& out) {
  const KernelTraits& traits = record.traits;
  if (!find_misfits(request, traits, table.pack().revision, false, out.grid).none()) return false;
  out.record = &record;
  out.relaxations = request.skip_softmax && !traits.skip_softmax ? 1 : 0;
  out.time = modelled_time(visible_kv_len(request, traits), request.num_sms, traits.tile_q,
                           traits.step_kv, out.grid);
  return true;
}

namespace {

/// The first of all that serve; `safe`: the best without a precondition, kept even when the list
/// overflows.
RankedKernels rank(const PackTable& table, const Request& request, AcceptKernel accepts,
                   const void* context, RankedKernel& safe) {
  RankedKernels list;
  for (const std::uint32_t index : table.group_members(table.find_group(request.wanted))) {
    RankedKernel kernel;
    const KernelRecord& record = table.pack().kernels[index];
    if (!rank_kernel(table, request, record, kernel)) continue;
    if (!accepts(context, record, kernel.grid)) continue;
    if (!needs_clusters(kernel) && (safe.record == nullptr || ranks_before(kernel, safe))) {
      safe = kernel;
    }
    insert(list, kernel);
  }
  return list;
}

}  // namespace

bool ranks_before(const RankedKernel& a, const RankedKernel& b) {
  if (a.relaxations != b.relaxations) return a.relaxations < b.relaxations;
  if (a.time != b.time) return a.time < b.time;
  if (a.record->traits.tile_q != b.record->traits.tile_q) {
    return a.record->traits.tile_q > b.record->traits.tile_q;
  }
  return is_preferred(*a.record, *b.record);
}

RankedKernels rank_all_serving_kernels(const PackTable& table, const Request& request) {
  RankedKernel ignored;
  return rank(
      table, request, [](const void*, const KernelRecord&, const CtaGrid&) { return true; },
      nullptr, ignored);
}

RankedKernels rank_serving_kernels(const PackTable& table, const Request& request,
                                   AcceptKernel accepts, const void* context) {
  RankedKernel safe;
  RankedKernels list = rank(table, request, accepts, context, safe);
  std::uint32_t end = 0;
  while (end < list.count && needs_clusters(list.kernels[end])) ++end;
  if (end < list.count) {
    list.count = end + 1;
  } else if (safe.record != nullptr) {
    // Nothing but clusters ranked first: the last place goes to one that fits any device.
    if (list.count < RankedKernels::kMax) ++list.count;
    list.kernels[list.count - 1] = safe;
  }
  return list;
}

}  // namespace cubist::selector
