#include <algorithm>

#include "manifest/rules.h"
#include "manifest/text.h"
#include "manifest/validate.h"

namespace cubist {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '$' || c == '+';
}

Status check_text(std::string_view text, std::size_t max_length, std::string_view pointer) {
  if (text.size() > max_length) {
    return invalid(pointer, "{} bytes; at most {} are allowed", text.size(), max_length);
  }
  if (const std::size_t at = find_control(text); at != std::string_view::npos) {
    return invalid(pointer, "control character at byte {} of {}", at, shown(text));
  }
  return {};
}

Status check_name(std::string_view name, std::string_view pointer) {
  if (name.empty()) return invalid(pointer, "a name must not be empty");
  if (name.size() > kMaxNameLength) {
    return invalid(pointer, "a name of {} bytes; at most {} are allowed", name.size(),
                   kMaxNameLength);
  }
  const auto bad = std::find_if_not(name.begin(), name.end(), is_name_character);
  if (bad != name.end() || name[0] == '.' || name[0] == '-' || name[0] == '+') {
    return invalid(pointer,
                   "{} is no name: letters, digits and _ . - $ + are allowed, the first must be a "
                   "letter, a digit, _ or $",
                   shown(name));
  }
  return {};
}

}  // namespace cubist
