#pragma once

#include <string>
#include <string_view>

namespace cubist {

/// A JSON string with its quotes; bytes that are no UTF-8 become the replacement character.
std::string json_string(std::string_view text);

/// A text from outside as a message may show it: in single quotes, control characters escaped, cut
/// to 80 bytes.
std::string in_quotes(std::string_view text);

}  // namespace cubist
