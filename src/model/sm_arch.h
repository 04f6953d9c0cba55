#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cubist {

/// What a cubin was assembled for.
///   sm_90    portable: runs on 9.x with x >= 0
///   sm_90a   specific: runs on 9.0 alone
///   sm_100f  family: runs on 10.x with x >= 0 of the same family (here: 100, 103)
struct SmArch {
  enum class Kind : std::uint8_t { kPortable = 0, kSpecific = 1, kFamily = 2 };

  std::uint16_t sm = 0;  ///< major * 10 + minor: 90, 100, 103, ...
  Kind kind = Kind::kPortable;

  auto operator<=>(const SmArch&) const = default;
};

/// "sm_100f"
std::string to_string(SmArch arch);
/// "sm_100f" or "100f"
std::optional<SmArch> parse_sm_arch(std::string_view text);
/// Whether a cubin for `arch` runs on a device of compute capability `device_sm`.
bool runs_on(SmArch arch, std::uint32_t device_sm);

}  // namespace cubist
