#include <cmath>

#include "document/json_text.h"
#include "presets/hf_fields.h"

namespace cubist::presets {
namespace {

enum class LayerKind { kFull, kSliding, kLinear };

/// What a class of the library fills in where a config.json of the family is silent. Source:
/// huggingface/transformers, configuration_<family>.py. 0: must be given.
struct FamilyDefaults {
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_dim = 0;
  std::int32_t window_pattern = 0;  ///< every so many layers one is full; 0: no such rule
};

FamilyDefaults defaults_of(const HfFields& fields) {
  if (fields.model_type == "gemma3") return {8, 4, 256, 6};
  if (fields.is_family({"gemma4", "gemma4_unified"})) return {0, 0, 256, 6};
  if (fields.model_type == "gpt_oss") return {0, 0, 64, 2};
  return {};
}

std::int32_t head_dim_of(const HfFields& fields, std::int32_t heads, std::int32_t otherwise) {
  std::int32_t head_dim = 0;
  if (fields.node.member("head_dim").read_integer(head_dim, 1, 1024)) return head_dim;
  if (otherwise != 0) return otherwise;
  const std::int32_t hidden = fields.required("hidden_size");
  if (hidden % heads != 0) {
    fields.node.member("hidden_size")
        .complain(fmt::format("is {} and num_attention_heads is {}: head_dim is missing and does "
                              "not follow from them",
                              hidden, heads));
    return 1;
  }
  return hidden / heads;
}

LayerKind parse_layer_kind(const DocumentNode& node) {
  std::string text;
  node.read(text);
  if (text == "full_attention") return LayerKind::kFull;
  if (text == "sliding_attention") return LayerKind::kSliding;
  if (text == "linear_attention") return LayerKind::kLinear;
  node.complain(
      fmt::format("{} is no layer type known here; known are full_attention, "
                  "sliding_attention, linear_attention",
                  in_quotes(text)));
  return LayerKind::kFull;
}

/// Layers as older files describe them, by a pattern instead of a list.
LayerKind kind_by_rule(const HfFields& fields, std::int32_t layer, std::int32_t pattern,
                       std::int32_t linear_interval, std::int32_t first_windowed, bool windowed) {
  if (linear_interval > 0) {
    return (layer + 1) % linear_interval == 0 ? LayerKind::kFull : LayerKind::kLinear;
  }
  if (!windowed) return LayerKind::kFull;
  if (fields.model_type == "gpt_oss")
    return layer % 2 == 0 ? LayerKind::kSliding : LayerKind::kFull;
  if (pattern > 0) return (layer + 1) % pattern == 0 ? LayerKind::kFull : LayerKind::kSliding;
  return layer >= first_windowed ? LayerKind::kSliding : LayerKind::kFull;
}

std::vector<LayerKind> layer_kinds(const HfFields& fields, std::int32_t layers, bool windowed) {
  std::vector<LayerKind> kinds;
  const DocumentNode list = fields.node.member("layer_types");
  if (list.present()) {
    for (const DocumentNode& item : list.items()) kinds.push_back(parse_layer_kind(item));
    if (kinds.size() != static_cast<std::size_t>(layers)) {
      list.complain(fmt::format("has {} entries and num_hidden_layers is {}: they must agree",
                                kinds.size(), layers));
    }
    return kinds;
  }
  const std::int32_t pattern =
      fields.optional("sliding_window_pattern", defaults_of(fields).window_pattern);
  const bool hybrid = fields.is_family({"qwen3_next", "qwen3_5", "qwen3_5_moe"});
  const std::int32_t interval = hybrid ? fields.optional("full_attention_interval", 4) : 0;
  const std::int32_t first = fields.is_family({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})
                                 ? fields.optional("max_window_layers", layers)
                                 : 0;
  for (std::int32_t i = 0; i < layers; ++i) {
    kinds.push_back(kind_by_rule(fields, i, pattern, interval, first, windowed));
  }
  return kinds;
}

std::optional<double> scale_of(const HfFields& fields, std::int32_t head_dim) {
  // Query and key are normed there, and nothing else scales the scores.
  if (fields.is_family({"gemma4", "gemma4_unified"})) return 1.0;
  double scalar = 0;
  if (!fields.node.member("query_pre_attn_scalar").read_number(scalar)) return std::nullopt;
  if (!(scalar > 0)) {
    fields.node.member("query_pre_attn_scalar").complain("must be above 0");
    return std::nullopt;
  }
  if (scalar == static_cast<double>(head_dim)) return std::nullopt;
  return 1.0 / std::sqrt(scalar);
}

}  // namespace

std::vector<AttentionPreset> read_gqa_layers(const HfFields& fields) {
  const FamilyDefaults defaults = defaults_of(fields);
  const std::int32_t layers = fields.required("num_hidden_layers", 65535);
  const std::int32_t heads = defaults.heads != 0
                                 ? fields.optional("num_attention_heads", defaults.heads, 65535)
                                 : fields.required("num_attention_heads", 65535);
  if (heads == 0) {
    fields.node.member("num_attention_heads").complain("must be above 0");
    return {};
  }
  AttentionPreset full;
  full.name = "full";
  full.num_q_heads = heads;
  full.num_kv_heads = fields.optional("num_key_value_heads",
                                      defaults.kv_heads != 0 ? defaults.kv_heads : heads, 65535);
  full.head_dim_qk = head_dim_of(fields, heads, defaults.head_dim);
  full.sinks = fields.model_type == "gpt_oss";

  // These have a switch for the window, off unless the file turns it on.
  bool uses_window = !fields.is_family({"qwen2", "qwen2_moe", "qwen3", "qwen3_moe"});
  fields.node.member("use_sliding_window").read(uses_window);
  std::int32_t window = fields.optional("sliding_window", 0, 2147483646);
  // A window beyond the longest context never hides a key.
  const std::int32_t longest = fields.optional("max_position_embeddings", 0, 2147483646);
  if (!uses_window || (longest > 0 && window >= longest)) window = 0;

  AttentionPreset sliding = full;
  sliding.name = "sliding";
  sliding.window_left = window - 1;  // the query's own token counts
  full.head_dim_qk = fields.optional("global_head_dim", full.head_dim_qk, 1024);
  full.num_kv_heads = fields.optional("num_global_key_value_heads", full.num_kv_heads, 65535);
  for (AttentionPreset* a : {&full, &sliding}) {
    a->head_dim_vo = a->head_dim_qk;
    a->sm_scale = scale_of(fields, a->head_dim_qk);
  }

  for (const LayerKind kind : layer_kinds(fields, layers, window > 0)) {
    if (kind == LayerKind::kFull) ++full.layers;
    if (kind == LayerKind::kSliding) ++sliding.layers;
  }
  if (sliding.layers > 0 && window == 0) {
    fields.node.member("sliding_window")
        .complain("is missing or off, but layer_types names sliding_attention layers");
  }
  std::vector<AttentionPreset> found;
  if (sliding.layers > 0) found.push_back(sliding);
  if (full.layers > 0) found.push_back(full);
  return found;
}

}  // namespace cubist::presets
