#pragma once

#include <cstdint>

#include "model/kernel_record.h"
#include "selector/decode_model.h"
#include "selector/request.h"

namespace cubist::selector {

/// A static kernel is taken where it is so much faster: its time is that of equal lengths, the
/// persistent one's holds for any.
inline constexpr double kStaticDoubt = 1.0 / 0.8;

/// How a cubist_decode kernel's CTAs are laid over a problem.
struct DecodeSplit {
  std::int64_t columns = 1;      ///< CTAs a sequence has before its keys are split
  std::int32_t num_ctas_kv = 1;  ///< persistent: groups of CTAs that share the whole batch's keys
  double microseconds = 0;       ///< modelled
};

/// The split of the least modelled time, in microseconds of an H200; only comparisons mean
/// anything. A static kernel's CTAs come in waves and share their SM; a persistent kernel's groups
/// get equal shares of the batch. The shipped constants are bench/decode/fit.py's, from
/// docs/results/h200-decode-sweep.json; `cubist tune` makes others.
DecodeSplit best_split(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                       std::int64_t columns);

/// The modelled time of one way to lay a kernel's CTAs over a problem: what best_split compares,
/// but without the margin that static kernels get for unequal lengths.
double modelled_us(const DecodeModel& model, const Request& request, const KernelTraits& traits,
                   std::int64_t columns, std::int32_t num_ctas_kv);

/// num_ctas_kv of a batch-invariant launch, of a static kernel: one for 1,024 keys, but no more
/// than make 128 CTAs a sequence (16 to 64 of each KV head). The kernel gives a sequence one CTA
/// for 1,024 of its own keys, up to this number, so that a longer sequence beside it changes
/// nothing.
std::int32_t invariant_split(std::int32_t max_kv_len, std::int32_t max_q_len, std::int32_t window,
                             std::int32_t num_kv_heads);

/// CTAs that a launch split over keys has at most, whatever the problem unless it is
/// batch_invariant: all sequences, heads and splits counted.
std::int64_t max_split_ctas(const DecodeModel& model, const KernelTraits& traits,
                            std::int32_t num_sms);

}  // namespace cubist::selector
