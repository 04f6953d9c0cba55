#include "presets/library.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "document/document.h"
#include "document/json_text.h"
#include "presets/hf_config.h"

namespace cubist::presets {
namespace {

constexpr std::uint64_t kMaxPresetBytes = 16ULL << 20;

std::string lowered(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Edits that turn one text into the other (Levenshtein), for "did you mean".
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, corner + (a[i - 1] == b[j - 1] ? 0 : 1)});
      corner = above;
    }
  }
  return row[b.size()];
}

const std::string& name_of(const ModelPreset& model) { return model.name; }
const std::string& name_of(const DevicePreset& device) { return device.profile.name; }

template <class Preset>
Result<Preset> find_preset(const std::vector<Preset>& presets, std::string_view name,
                           std::string_view kind) {
  const std::string wanted = lowered(name.substr(0, 200));
  std::vector<std::pair<std::size_t, std::string>> nearest;
  for (auto preset = presets.rbegin(); preset != presets.rend(); ++preset) {
    const std::string own = lowered(name_of(*preset));
    if (own == wanted) return *preset;
    for (const std::string& alias : preset->aliases) {
      if (lowered(alias) == wanted) return *preset;
    }
    nearest.emplace_back(edit_distance(own, wanted), name_of(*preset));
  }
  std::sort(nearest.begin(), nearest.end());
  std::string names;
  for (std::size_t i = 0; i < nearest.size() && i < 3; ++i) {
    names += (i > 0 ? ", " : "") + nearest[i].second;
  }
  return fail(StatusCode::kNotFound,
              "no {} preset is called {}; nearest: {}. 'cubist presets' lists all, --presets FILE "
              "adds your own",
              kind, in_quotes(name), names.empty() ? "none is loaded" : names);
}

Result<std::string> schema_of(std::string_view text, const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const Document document, Document::parse(text, path));
  std::string schema;
  document.root().required("schema").read(schema);
  CUBIST_RETURN_IF_ERROR(document.status());
  return schema;
}

}  // namespace

Status Library::add_file(const std::string& path) {
  CUBIST_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxPresetBytes));
  CUBIST_ASSIGN_OR_RETURN(const std::string schema, schema_of(text, path));
  if (schema == "cubist.models") {
    CUBIST_ASSIGN_OR_RETURN(std::vector<ModelPreset> models, parse_model_presets(text, path));
    std::move(models.begin(), models.end(), std::back_inserter(models_));
  } else if (schema == "cubist.devices") {
    CUBIST_ASSIGN_OR_RETURN(std::vector<DevicePreset> devices, parse_device_presets(text, path));
    std::move(devices.begin(), devices.end(), std::back_inserter(devices_));
  } else {
    return fail(StatusCode::kInvalidArgument,
                "{}: /schema: is {}; a preset file says cubist.models or cubist.devices", path,
                in_quotes(schema));
  }
  return {};
}

Result<Library> Library::load(const std::string& folder, const std::vector<std::string>& files) {
  Library library;
  for (const char* name : {"models.json", "devices.json"}) {
    if (Status added = library.add_file(folder + "/" + name); !added) {
      return forward_error(added,
                           "the presets that come with cubist (CUBIST_PRESETS names their folder)");
    }
  }
  for (const std::string& file : files) CUBIST_RETURN_IF_ERROR(library.add_file(file));
  return library;
}

Result<ModelPreset> Library::find_model(std::string_view name) const {
  return find_preset(models_, name, "model");
}

Result<DevicePreset> Library::find_device(std::string_view name) const {
  return find_preset(devices_, name, "device");
}

Result<ModelPreset> Library::resolve_model(const std::string& name_or_path) const {
  Result<ModelPreset> named = find_model(name_or_path);
  if (named) return named;
  std::error_code ignored;
  const std::filesystem::path path(name_or_path);
  if (std::filesystem::is_directory(path, ignored)) {
    return load_hf_config((path / "config.json").string());
  }
  const bool looks_like_path =
      path.extension() == ".json" || std::filesystem::exists(path, ignored);
  return looks_like_path ? load_hf_config(name_or_path) : named;
}

}  // namespace cubist::presets
