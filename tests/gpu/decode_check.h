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

/// Compares every element and sees to it that nothing else was written.
DecodeErrors check_output(const DecodeVariant& variant, const DecodeCase& problem,
                          const DecodeAnswer& answer, const DecodeOutput& output);

}  // namespace cubist::test
