#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/decode_case.h"

namespace cubist::test {

/// What a kernel left in memory: O by the case's strides, filled with 0xffff before; LSE dense.
struct DecodeOutput {
  std::vector<std::uint16_t> o;
  std::vector<float> lse;  ///< empty where the case wants none
};

/// Whether two outputs are the same to the last bit.
bool same_bits(const DecodeOutput& a, const DecodeOutput& b);

/// How far an output is from the reference.
struct DecodeErrors {
  double worst_of_tolerance = 0.0;  ///< largest |error| / tolerance; above 1 the case has failed
  double worst_lse = 0.0;           ///< largest |error| of LSE
  double squared_error = 0.0;       ///< sums over all elements: relative Frobenius error
  double squared_norm = 0.0;
  std::string failure;  ///< empty, or what is wrong first
};

/// Bound of |o - reference| for an element of that answer:
///
///   1.25 (p magnitude + r |o|) + 2^-24 largest_magnitude (fp16 probabilities only) + u
///
/// p: relative rounding of the probabilities before the second MMA, 2^-8 (bf16) or 2^-11 (fp16, and
///    with e4m3 KV); r: that of the output, 2^-8 or 2^-11. A quarter more for single precision
///    scores and sums. In fp16 a probability loses up to 2^-25 of the row's largest, and u is half
///    the distance of the smallest numbers, 2^-25, for an fp16 output.
double output_tolerance(const DecodeVariant& variant, const DecodeAnswer& answer,
                        std::size_t element);

/// Bound of |lse - reference|: single precision scores of size |lse| and approximate exp2 and log2.
double lse_tolerance(double lse);

/// Compares every element and sees to it that nothing else was written.
DecodeErrors check_output(const DecodeVariant& variant, const DecodeCase& problem,
                          const DecodeAnswer& answer, const DecodeOutput& output);

}  // namespace cubist::test
