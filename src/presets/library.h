#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "presets/device_preset.h"
#include "presets/model_preset.h"

namespace cubist::presets {

/// Models and devices by name. Names and aliases are compared without regard to case; what was
/// added later hides what has the same name.
class Library {
 public:
  /// The presets that come with the project (models.json and devices.json of `folder`, see
  /// default_preset_folder), then the user's files in order. A file's "schema" says what it holds.
  /// errors  kNotFound, kIo, kInvalidArgument with file and place
  static Result<Library> load(const std::string& folder, const std::vector<std::string>& files);

  Status add_file(const std::string& path);

  const std::vector<ModelPreset>& models() const { return models_; }
  const std::vector<DevicePreset>& devices() const { return devices_; }

  /// errors  kNotFound; the message names the nearest ones
  Result<ModelPreset> find_model(std::string_view name) const;
  Result<DevicePreset> find_device(std::string_view name) const;

  /// A preset's name, or the path of a Hugging Face config.json or of a folder that has one.
  Result<ModelPreset> resolve_model(const std::string& name_or_path) const;

 private:
  std::vector<ModelPreset> models_;
  std::vector<DevicePreset> devices_;
};

/// CUBIST_PRESETS if set, else share/cubist/presets beside the folder of the running program.
std::string default_preset_folder();

}  // namespace cubist::presets
