#include "presets/hf_config.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "document/json_text.h"
#include "presets/hf_fields.h"

namespace cubist::presets {
namespace {

constexpr std::uint64_t kMaxConfigBytes = 4ULL << 20;
constexpr std::array<std::string_view, 19> kKnownTypes = {
    "llama",       "mistral",      "mixtral",   "phi3",           "qwen2",
    "qwen2_moe",   "qwen3",        "qwen3_moe", "qwen3_next",     "qwen3_5",
    "qwen3_5_moe", "gemma3",       "gemma4",    "gemma4_unified", "gpt_oss",
    "deepseek_v3", "deepseek_v32", "kimi_k2",   "kimi_k25"};

/// The object with the text model's fields: the document itself, or its "text_config".
DocumentNode text_part(const DocumentNode& root) {
  const DocumentNode part = root.member("text_config");
  return part.present() ? part : root;
}

std::string family_of(const DocumentNode& part, const DocumentNode& root) {
  std::string type;
  if (!part.member("model_type").read(type)) root.required("model_type").read(type);
  constexpr std::string_view kSuffix = "_text";
  if (type.size() > kSuffix.size() && type.compare(type.size() - kSuffix.size(), 5, kSuffix) == 0) {
    type.resize(type.size() - kSuffix.size());
  }
  return type;
}

std::string model_name(const DocumentNode& root, std::string_view file_name) {
  std::string name;
  if (root.member("_name_or_path").read(name) && !name.empty()) return name;
  const std::filesystem::path path{std::string(file_name)};
  const std::string folder = path.parent_path().filename().string();
  return folder.empty() ? path.stem().string() : folder;
}

}  // namespace

Result<ModelPreset> read_hf_config(std::string_view text, std::string_view file_name) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, file_name));
  const DocumentNode root = document.root();
  if (!root.is_object()) root.complain("expected an object");
  const DocumentNode part = text_part(root);
  const HfFields fields{part, family_of(part, root)};
  CUBIST_RETURN_IF_ERROR(document.status());
  if (std::find(kKnownTypes.begin(), kKnownTypes.end(), fields.model_type) == kKnownTypes.end()) {
    return fail(StatusCode::kInvalidArgument,
                "{}: {}/model_type: {} is not known here; known are {}. Describe the model in a "
                "preset file instead (docs/presets.md)",
                file_name, part.pointer(), in_quotes(fields.model_type), joined(kKnownTypes));
  }
  ModelPreset model;
  model.name = model_name(root, file_name);
  model.file = file_name;
  model.max_kv_len = fields.optional("max_position_embeddings", 0, 2147483646);
  model.sources = {std::string(file_name)};
  const bool mla = fields.is_family({"deepseek_v3", "deepseek_v32", "kimi_k2", "kimi_k25"});
  model.attention = mla ? read_mla_layers(fields) : read_gqa_layers(fields);
  CUBIST_RETURN_IF_ERROR(document.status());
  if (Status valid = validate_model_preset(model); !valid) return forward_error(valid, file_name);
  return model;
}

Result<ModelPreset> load_hf_config(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxConfigBytes));
  return read_hf_config(text, path);
}

}  // namespace cubist::presets
