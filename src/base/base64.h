#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cubist {

/// Base64 with "+", "/" and padding (RFC 4648, section 4), on one line.
std::string to_base64(std::span<const std::uint8_t> bytes);

/// The bytes of such a text; nothing for white space, missing padding, or bits set behind the end:
/// a value has one text.
std::optional<std::vector<std::uint8_t>> parse_base64(std::string_view text);

}  // namespace cubist
