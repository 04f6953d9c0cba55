#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/device_profile.h"

namespace cubist::presets {

/// A GPU as tables describe it. Selection reads `profile` alone; a device that is there should be
/// asked instead (chips of one product differ in how their SMs are grouped).
struct DevicePreset {
  DeviceProfile profile;  ///< its name is the preset's
  std::vector<std::string> aliases;
  std::int64_t l2_bytes = 0;  ///< 0 = not known; so below
  std::int64_t memory_bytes = 0;
  std::int64_t memory_gb_per_s = 0;  ///< 10^9 bytes per second, datasheet
  std::string host;                  ///< usual host processor: "x86_64", "aarch64", or empty
  std::vector<std::string> sources;
  std::vector<std::string> unsure;
  std::string file;
};

/// The devices of a preset file (docs/presets.md), all or nothing.
Result<std::vector<DevicePreset>> parse_device_presets(std::string_view text,
                                                       std::string_view file_name);

}  // namespace cubist::presets
