#pragma once

#include <array>
#include <cstdint>

#include "launcher/tensor_map_spec.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/attention_problem.h"
#include "model/launch_plan.h"

namespace cubist::trtllm_gen {

/// The descriptors of one launch, in the order of the parameter block's slots. Fixed size.
struct TensorMaps {
  static constexpr std::uint32_t kMax = 7;
  std::array<TensorMapSpec, kMax> maps;
  std::uint32_t count = 0;
};

/// Shapes, strides and boxes of Q, K, V, O, the second pool and the FP4 scale tensors.
///
/// problem  derived (with_derived_fields) and prepared (prepare_sparse_dynamic)
/// errors   kInvalidArgument: a box row that no swizzle fits
Result<TensorMaps> describe_tensor_maps(const AttentionProblem& problem, const LaunchPlan& plan,
                                        const Addresses& addresses);

/// The reshape of K and V boxes (rows of short heads laid side by side), 1 where it does not apply.
std::int32_t kv_reshape_factor(const AttentionProblem& problem, const LaunchPlan& plan);

}  // namespace cubist::trtllm_gen
