#pragma once

#include <cstddef>

#include "model/dtype.h"
#include "reference/decode_reference.h"

namespace cubist {

/// Bound of |o - reference| for an element of that answer:
///
///   1.25 (p magnitude + r |o|) + 2^-24 largest_magnitude (fp16 probabilities only) + u
///
/// p: relative rounding of the probabilities before the second MMA, 2^-8 (bf16) or 2^-11 (fp16, and
///    with e4m3 KV); r: that of the output, 2^-8, 2^-11 or 2^-4 (e4m3). A quarter more for single
///    precision scores and sums. In fp16 a probability loses up to 2^-25 of the row's largest, and
///    u is half the distance of the smallest numbers, 2^-25 for an fp16 output, 2^-10 for e4m3.
///
/// An e4m3 output is held against the reference within +-448. dtype_kv: for MLA kernels, whose
/// probabilities are always of Q's type, that.
double decode_tolerance(Dtype dtype_o, Dtype dtype_kv, const DecodeAnswer& answer,
                        std::size_t element);

/// The same before the output is rounded: 1.25 p magnitude + 2^-24 largest_magnitude + 2^-20 |o|.
double unrounded_tolerance(Dtype dtype_kv, const DecodeAnswer& answer, std::size_t element);

/// Bound of |lse - reference|: single precision scores of size |lse| and approximate exp2 and log2.
double lse_tolerance(double lse);

}  // namespace cubist
