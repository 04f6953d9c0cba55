#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cubist {

/// Lower-case hexadecimal, two digits a byte.
std::string to_hex(std::span<const std::uint8_t> bytes);

/// Fills `out` from exactly 2 * out.size() digits of either case; false if the text is anything
/// else.
bool parse_hex(std::string_view text, std::span<std::uint8_t> out);

}  // namespace cubist
