#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/decode_case.h"
#include "launcher/nvfp4_output.h"

namespace cubist::test {

/// What a kernel left in memory: O by the case's strides, an element's bits each, filled with ones
/// before; LSE dense.
struct DecodeOutput {
  std::vector<std::uint16_t> o;
  std::vector<std::uint8_t> o_sf;  ///< nvfp4 output: block scales
  std::vector<float> lse;          ///< empty where the case wants none
};

/// Where the block scales of a case's nvfp4 output lie.
launcher::Nvfp4ScaleLayout block_scales_of(const DecodeCase& made);

/// The bits of an element that was never written.
std::uint16_t poison_of(Dtype dtype_o);

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
///
/// An nvfp4 block of 16: its scale must be what the reference's largest magnitude, give or take the
/// tolerance before rounding, is rounded to; and each element within that tolerance and half a step
/// of e2m1 times that scale.
DecodeErrors check_output(const DecodeVariant& variant, const DecodeCase& problem,
                          const DecodeAnswer& answer, const DecodeOutput& output);

}  // namespace cubist::test
