#pragma once

#include <string>
#include <string_view>

#include "presets/model_preset.h"

namespace cubist::presets {

/// What a Hugging Face config.json says about a model's attention.
///
/// Known "model_type"s: llama, mistral, mixtral, phi3, qwen2, qwen3 (also _moe), qwen3_next,
/// qwen3_5 (also _moe), gemma3, gemma4, gpt_oss, deepseek_v3, deepseek_v32, kimi_k2, and those of
/// their text parts ("..._text"); of a multimodal model the text part is read. Linear-attention
/// layers are left out: no attention kernel serves them.
///
/// errors  kInvalidArgument: a field that is missing, out of range, or contradicts another, by
///         name; a model_type or layer type that is not known here
Result<ModelPreset> read_hf_config(std::string_view text, std::string_view file_name);
Result<ModelPreset> load_hf_config(const std::string& path);

}  // namespace cubist::presets
