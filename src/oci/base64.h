#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cubist::oci {

/// Base64 as credentials files and tokens have it: of either alphabet of RFC 4648, with or without
/// padding. nullopt if it is anything else. (base/base64.h writes it, and reads it strictly.)
std::optional<std::string> from_base64(std::string_view text);

}  // namespace cubist::oci
