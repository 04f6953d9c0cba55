#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/attention_problem.h"

namespace cubist::presets {

/// Layers of a model that ask attention kernels for the same shape in the same phases.
struct AttentionPreset {
  std::string name;                                 ///< "full", "sliding", "mla": for people
  std::int32_t layers = 0;                          ///< how many of the model's layers
  std::array<bool, 3> phases = {true, true, true};  ///< by Phase
  std::int32_t num_q_heads = 0;
  std::int32_t num_kv_heads = 0;
  std::int32_t head_dim_qk = 0;
  std::int32_t head_dim_vo = 0;
  std::int32_t window_left = -1;  ///< tokens left of the query's own; -1 = no window
  bool sinks = false;
  bool is_mla = false;  ///< absorbed MLA: one KV head whose tensor is K and V
  std::int32_t sparse_mla_topk = 0;
  std::optional<double> sm_scale;  ///< empty: head_dim_qk ^ -0.5

  bool serves(Phase phase) const { return phases[static_cast<std::size_t>(phase)]; }
  bool operator==(const AttentionPreset&) const = default;
};

struct ModelPreset {
  std::string name;
  std::vector<std::string> aliases;
  std::int32_t max_kv_len = 0;   ///< longest context, tokens; 0 = not known
  std::vector<Dtype> dtypes_kv;  ///< KV cache types in use, as far as a source says
  std::vector<AttentionPreset> attention;
  std::vector<std::string> sources;  ///< where the numbers were read
  std::vector<std::string> unsure;   ///< what no good source says
  std::string file;                  ///< it was read from

  bool operator==(const ModelPreset&) const = default;
};

/// The models of a preset file (docs/presets.md), all or nothing.
/// errors  kInvalidArgument with file, JSON pointer and rule
Result<std::vector<ModelPreset>> parse_model_presets(std::string_view text,
                                                     std::string_view file_name);

/// Checks what every preset must hold, wherever it came from: positive sizes, heads that divide,
/// a layer at least.
Status validate_model_preset(const ModelPreset& model);

/// Writes the heads, head sizes, window, sinks, MLA and top-k of `attention` into `problem`, on one
/// of `tensor_parallel` devices: query heads are divided, KV heads too, but never below one.
/// errors  kInvalidArgument: heads that do not divide
Status apply_attention(const AttentionPreset& attention, std::int32_t tensor_parallel,
                       AttentionProblem& problem);

}  // namespace cubist::presets
