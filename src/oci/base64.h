#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cubist::oci {

/// RFC 4648 with padding: what the header Authorization: Basic has.
std::string to_base64(std::string_view bytes);

/// Of either alphabet (the second is that of tokens), with or without padding; nullopt if it is
/// anything else.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace cubist::oci
