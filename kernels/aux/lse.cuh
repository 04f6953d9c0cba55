#pragma once

#include <cmath>
#include <cstdint>

#include "model/aux_params.h"
#include "place.cuh"

namespace cubist_aux {

/// lse[token, head] = log2 of the sum of 2^score, from {scaled maximum in natural-log units, sum of
/// e^(score - maximum)}. A sum of 0 gives -inf.
CUBIST_AUX_FN void write_lse(const CubistLseParams& p, std::int64_t entry) {
  if (entry >= p.num_entries) return;
  const Stats stats = reinterpret_cast<const Stats*>(p.softmax_stats)[entry];
  const std::int64_t token = entry / p.num_q_heads;
  const std::int64_t head = entry - token * p.num_q_heads;
  const float lse = stats.sum == 0.0F ? -INFINITY : stats.maximum * kLog2E + log2f(stats.sum);
  p.lse[token * p.stride_tokens + head * p.stride_heads] = lse;
}

}  // namespace cubist_aux
