#pragma once

#include "model/aux_params.h"
#include "place.cuh"

namespace cubist_aux {

/// A product rounded to float32, which nothing may contract or widen.
CUBIST_AUX_FN float rounded_product(float a, float b) {
#ifdef __CUDA_ARCH__
  return __fmul_rn(a, b);
#else
  return a * b;
#endif
}

/// The operations of cubist::fuse_scales (src/launcher/scales.h), so that their results are equal
/// to the bit. log2(e) is multiplied in double and the product rounded once.
CUBIST_AUX_FN void fuse_scales(const CubistFuseScalesParams& p) {
  const float q = p.q != nullptr ? *p.q : p.q_value;
  const float k = p.k != nullptr ? *p.k : p.k_value;
  const float sm = p.sm != nullptr ? *p.sm : p.sm_value;
  const float v = p.v != nullptr ? *p.v : p.v_value;
  const float o = p.o != nullptr ? *p.o : p.o_value;
  const float bmm1 = rounded_product(rounded_product(q, k), sm);
  *p.bmm1_scale_log2 = static_cast<float>(static_cast<double>(bmm1) * 1.4426950408889634);
  *p.bmm2_scale = rounded_product(v, o);
}

}  // namespace cubist_aux
