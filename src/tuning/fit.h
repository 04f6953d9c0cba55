#pragma once

#include <span>

#include "tuning/measured.h"

namespace cubist::tuning {

/// Fits the model of time of the cubist_decode rules to measurements, as bench/decode/fit.py does:
///
///   static kernels, by bits of K, head_dim and tile_q:  alone, more and per_sm
///   persistent kernels together:                         element, a fifth to five times the old
///   MLA kernels together:                                mla_tile, likewise
///
/// each so that the sum of |log(modelled / measured)| is least; then parts with which the choices
/// (judge.h) are worse than with the old ones are taken back. Everything else, and kernels that
/// nobody measured, keep what `from` has. Pure; the same rows give the same model.
selector::DecodeModel fit_decode_model(const selector::DecodeModel& from,
                                       std::span<const Measured> rows);

}  // namespace cubist::tuning
