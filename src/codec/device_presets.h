#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "model/device_profile.h"

namespace cubist {

/// A GPU by the name people use for it. Selection on a machine that has the GPU asks the driver.
struct DevicePreset {
  std::string_view name;         ///< "b200"
  std::string_view description;  ///< "B200, 148 SMs"
  std::uint32_t sm = 0;
  std::int32_t num_sms = 0;
  std::uint32_t max_smem_optin = 0;  ///< bytes
};

std::span<const DevicePreset> device_presets();

/// The profile of a preset, cluster answers filled in from the model of selector/occupancy.h.
std::optional<DeviceProfile> find_device_preset(std::string_view name);

}  // namespace cubist
