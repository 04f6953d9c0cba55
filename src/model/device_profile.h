#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cubist {

/// What selection needs to know of a GPU; from the driver, from a preset, or from the user.
struct DeviceProfile {
  std::string name;                       ///< "NVIDIA H200", "b200"; for people only
  std::uint32_t sm = 0;                   ///< compute capability: 90, 100, 103
  std::int32_t num_sms = 0;               ///< streaming multiprocessors
  std::uint32_t max_smem_optin = 232448;  ///< shared memory per block, bytes (driver attribute 97)
  /// Active clusters of [size] CTAs that fit at once with one CTA per SM; -1 = unknown.
  /// Index = cluster size, 0 and 1 unused.
  std::array<std::int32_t, 17> max_active_clusters = {-1, -1, -1, -1, -1, -1, -1, -1, -1,
                                                      -1, -1, -1, -1, -1, -1, -1, -1};
};

}  // namespace cubist
