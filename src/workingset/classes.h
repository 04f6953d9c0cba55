#pragma once

#include <string>
#include <vector>

#include "presets/model_preset.h"
#include "workingset/query.h"

namespace cubist::workingset {

/// What of a deployment is not its lengths: every combination is a class.
struct ClassOptions {
  std::vector<Phase> phases = {Phase::kDecode};
  std::vector<std::int32_t> tensor_parallel = {1};
  std::vector<Dtype> dtype_q = {Dtype::kBf16};
  std::vector<Dtype> dtype_kv;  ///< empty: as dtype_q
  std::vector<Dtype> dtype_o;   ///< empty: bf16 where dtype_q is quantised, else as dtype_q
  std::vector<std::int32_t> page_size = {64};
  AttentionProblem rest;  ///< flags and everything else: lse, skip_softmax, kv_layout, ...
};

/// The classes of a model's layers, those of equal problems once.
/// errors  kInvalidArgument: an empty list; a tensor parallel size that does not fit the heads
Result<std::vector<ProblemClass>> make_classes(const presets::ModelPreset& model,
                                               const ClassOptions& options);

/// The classes of the one shape that `options.rest` holds.
Result<std::vector<ProblemClass>> make_classes(const ClassOptions& options);

}  // namespace cubist::workingset
