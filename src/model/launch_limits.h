#pragma once

#include <cstdint>

namespace cubist {

// What any grid may hold. Source: CUDA C++ Programming Guide, technical specifications, the same
// for all compute capabilities served here.
inline constexpr std::uint32_t kMaxGridX = 2147483647;
inline constexpr std::uint32_t kMaxGridYz = 65535;

}  // namespace cubist
