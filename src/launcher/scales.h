#pragma once

#include <cstdint>

#include "base/result.h"
#include "launcher/call_args.h"
#include "model/attention_problem.h"
#include "model/aux_params.h"

namespace cubist::launcher {

// What each scale means:
//
//   q_scale   real Q = q_scale * stored Q
//   k_scale   real K = k_scale * stored K; quantised K alone
//   v_scale   real V = v_scale * stored V; quantised V alone
//   o_scale   stored O = o_scale * real O
//   sm_scale  score = sm_scale * (real Q . real K); left out: default_sm_scale
//
//   bmm1 = (q * k) * sm      score = bmm1 * (stored Q . stored K)
//   bmm2 = v * o             stored O = bmm2 * (probabilities . stored V)
//
// Float32, each product rounded, in that order. Kernels read bmm1 times log2(e), since they work
// with powers of two. Host values, fused device scalars and the fuse kernel agree to the bit.

/// The two factors a kernel is told by value.
struct FusedScales {
  float bmm1_log2 = 0.0F;  ///< q * k * sm, times log2(e)
  float bmm2 = 1.0F;       ///< v * o
  float bmm1 = 0.0F;       ///< q * k * sm
};

/// bmm1 * log2(e), multiplied in double and rounded once. The only host code that multiplies by
/// log2(e); the fuse kernel does the same operation.
float scale_log2(double bmm1);

/// The products of five numbers: the operations of the fuse kernel. Unchecked.
FusedScales fuse_scales(float q_scale, float k_scale, float sm_scale, float v_scale, float o_scale);

/// Elements of a query head as the model defines it, before MLA's absorption widens it to the
/// latent: head_dim_qk, but 192 (128 + 64 rotary) for 576/512 and 128 (64 + 64) for 320/256.
///
/// errors  kInvalidArgument: another MLA shape; nobody can know its head size
Result<std::int32_t> head_dim_before_absorption(const AttentionProblem& problem);

/// The softmax scale where none is given: 1 / sqrt(head_dim_before_absorption), rounded once.
Result<float> default_sm_scale(const AttentionProblem& problem);

/// Checks the call's scales and fuses the host ones.
///
/// errors  kInvalidArgument: not finite or 0; k_scale or v_scale with a KV dtype that is not
///         quantised; host scales beside the device scalar that replaces them
Result<FusedScales> fuse_scales(const AttentionProblem& problem, const CallArgs& args);

/// Addresses of one float each in device memory; 0 = take the host's number.
struct DeviceScales {
  std::uint64_t q_scale = 0;
  std::uint64_t k_scale = 0;
  std::uint64_t v_scale = 0;
  std::uint64_t sm_scale = 0;
  std::uint64_t o_scale = 0;
};

/// Parameters of the fuse kernel, which writes CallArgs' bmm1_scale_log2 and bmm2_scale from five
/// scales. One block of 32 threads.
///
/// scales           on the device
/// host             the others; sm_scale 0 and not on the device either: default_sm_scale
/// bmm1_scale_log2  device address of the float to write; bmm2_scale likewise
/// errors           kInvalidArgument: as fuse_scales; an address missing or not 4-byte aligned; the
///                  same scale on the host and on the device
Result<CubistFuseScalesParams> fill_fuse_scales_params(const AttentionProblem& problem,
                                                       const DeviceScales& scales,
                                                       const HostScales& host,
                                                       std::uint64_t bmm1_scale_log2,
                                                       std::uint64_t bmm2_scale);

}  // namespace cubist::launcher
