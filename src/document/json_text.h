#pragma once

#include <string>
#include <string_view>

namespace cubist {

/// A JSON string with its quotes; bytes that are no UTF-8 become the replacement character.
std::string json_string(std::string_view text);

/// A text from outside as a message may show it: in single quotes, control characters escaped, cut
/// to 80 bytes.
std::string in_quotes(std::string_view text);

/// "a, b, c"
template <class Texts>
std::string joined(const Texts& texts, std::string_view separator = ", ") {
  std::string out;
  bool first = true;
  for (const auto& text : texts) {
    if (!first) out.append(separator);
    out.append(text);
    first = false;
  }
  return out;
}

}  // namespace cubist
