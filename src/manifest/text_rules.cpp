#include <algorithm>
#include <array>

#include "manifest/rules.h"
#include "manifest/text.h"
#include "manifest/validate.h"

namespace cubist {
namespace {

constexpr std::array<bool, 256> name_characters() {
  std::array<bool, 256> characters{};
  for (char c = 'a'; c <= 'z'; ++c) characters[static_cast<unsigned char>(c)] = true;
  for (char c = 'A'; c <= 'Z'; ++c) characters[static_cast<unsigned char>(c)] = true;
  for (char c = '0'; c <= '9'; ++c) characters[static_cast<unsigned char>(c)] = true;
  for (const char c : {'_', '.', '-', '$', '+'}) characters[static_cast<unsigned char>(c)] = true;
  return characters;
}
// By table: opening a large manifest looks at a million characters of names.
constexpr std::array<bool, 256> kNameCharacters = name_characters();

}  // namespace

bool is_name_character(char c) { return kNameCharacters[static_cast<unsigned char>(c)]; }

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
  const auto bad = std::find_if_not(name.begin(), name.end(), [](char c) {
    return kNameCharacters[static_cast<unsigned char>(c)];
  });
  if (bad != name.end() || name[0] == '.' || name[0] == '-' || name[0] == '+') {
    return invalid(pointer,
                   "{} is no name: letters, digits and _ . - $ + are allowed, the first must be a "
                   "letter, a digit, _ or $",
                   shown(name));
  }
  return {};
}

}  // namespace cubist
