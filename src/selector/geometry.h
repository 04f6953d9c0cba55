#pragma once

#include <cstdint>

#include "model/kernel_record.h"
#include "selector/request.h"

namespace cubist::selector {

/// Rounded up; both positive. Divides in 32 bits where that is enough: selection divides a lot, and
/// the wide division costs several times as much.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  const auto sum = static_cast<std::uint64_t>(a + b - 1);
  const auto divisor = static_cast<std::uint64_t>(b);
  if ((sum | divisor) >> 32 == 0) {
    return static_cast<std::uint32_t>(sum) / static_cast<std::uint32_t>(divisor);
  }
  return static_cast<std::int64_t>(sum / divisor);
}

/// How a trtllm-gen kernel's CTAs are laid over a problem: X = num_ctas_q * num_ctas_kv (doubled
/// for pairs of CTAs), Y = heads and output columns, Z = batch.
struct CtaGrid {
  std::int32_t num_ctas_q = 1;
  std::int32_t num_ctas_kv = 1;
  std::int32_t num_head_ctas = 1;
  std::int32_t num_head_dim_ctas = 1;
  std::int32_t heads_per_cta = 1;
  std::int64_t x = 1;
  std::int64_t y = 1;
  std::int64_t z = 1;
  std::int32_t cluster_x = 1;

  std::int64_t total() const { return x * y * z; }
};

enum class GeometryFault : std::uint8_t {
  kNone,
  kHeadsPerCta,    ///< a CTA's heads do not divide the query heads
  kHeadDimPerCta,  ///< a CTA's output columns do not divide head_dim_vo
  kTwoCtaShape,    ///< pairs of CTAs need exactly two head CTAs and two column CTAs
};

/// Tokens of one query that a CTA of this kernel holds, at least 1: step_q rows hold several tokens
/// only where the kernel groups tokens and the head group leaves room.
std::int32_t tokens_per_cta(const Request& request, const KernelTraits& traits);

/// Heads of one KV group a CTA holds.
std::int32_t heads_per_cta(const Request& request, const KernelTraits& traits);

/// The grid before the KV sequence is split. `two_cta_pairs`: apply the shape of 2-CTA MMA.
GeometryFault base_grid(const Request& request, const KernelTraits& traits, bool two_cta_pairs,
                        CtaGrid& out);

/// Keys a query can see, as far as the kernel's mask and the top-k bound them; a window is widened
/// by the step, whose first keys may lie outside it.
std::int64_t visible_kv_len(const Request& request, const KernelTraits& traits);

/// CTAs one KV sequence is split over: each gets two steps at least, and all together fit the SMs.
std::int32_t split_count(const Request& request, const KernelTraits& traits, const CtaGrid& base);

/// Puts a split of `num_ctas_kv` and the cluster that goes with the kernel's mode into the grid.
void apply_split(const KernelTraits& traits, std::int32_t num_ctas_kv, CtaGrid& grid);

}  // namespace cubist::selector
