#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cubist {

/// What is appended to a kernel's name for the entry that reports its dynamic shared memory.
inline constexpr std::string_view kSmemSizeSuffix = "GetSmemSize";

/// The constant that a GetSmemSize entry stores through its pointer, in bytes; nothing if its code
/// is not, to the last byte outside that constant, the one that is known to do only this.
std::optional<std::uint32_t> smem_size_constant(std::span<const std::uint8_t> code);

}  // namespace cubist
