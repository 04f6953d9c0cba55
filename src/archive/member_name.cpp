#include "archive/member_name.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>

namespace cubist {
namespace {

constexpr std::size_t kMaxNameBytes = 1024;
constexpr std::size_t kMaxShownBytes = 120;

/// Takes one code point off `text`; nothing if the text does not start with well-formed UTF-8
/// (RFC 3629: shortest form, no surrogates, up to U+10FFFF).
std::optional<std::uint32_t> take_code_point(std::string_view& text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  std::size_t length = 1;
  std::uint32_t value = byte(0);
  std::uint32_t smallest = 0;
  if (value >= 0x80) {
    if (value >> 5 == 0x06) {
      length = 2, value &= 0x1f, smallest = 0x80;
    } else if (value >> 4 == 0x0e) {
      length = 3, value &= 0x0f, smallest = 0x800;
    } else if (value >> 3 == 0x1e) {
      length = 4, value &= 0x07, smallest = 0x10000;
    } else {
      return std::nullopt;
    }
  }
  if (text.size() < length) return std::nullopt;
  for (std::size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 2) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3fu);
  }
  if (value < smallest || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return value;
}

/// C0, DEL and C1, line separators, and the marks that turn the direction of text around.
bool is_control(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

std::string_view unsafe_part(std::string_view part) {
  if (part.empty()) return "has an empty part";
  if (part == ".") return "has a '.' part";
  if (part == "..") return "has a '..' part";
  return {};
}

}  // namespace

std::string_view unsafe_member_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kMaxNameBytes) return "is longer than 1024 bytes";
  if (name.front() == '/') return "is absolute";
  for (std::string_view rest = name; !rest.empty();) {
    const std::optional<std::uint32_t> c = take_code_point(rest);
    if (!c) return "is not UTF-8";
    if (is_control(*c)) return "has a control character";
    if (*c == '\\') return "has a backslash";
  }
  if (name.back() == '/') name.remove_suffix(1);
  while (true) {
    const std::size_t slash = name.find('/');
    if (const std::string_view why = unsafe_part(name.substr(0, slash)); !why.empty()) return why;
    if (slash == std::string_view::npos) return {};
    name.remove_prefix(slash + 1);
  }
}

std::string printable_member_name(std::string_view name) {
  std::string text;
  for (const char c : name.substr(0, kMaxShownBytes)) {
    const auto byte = static_cast<std::uint8_t>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\\') {
      text.push_back(c);
    } else {
      text += fmt::format("\\x{:02x}", byte);
    }
  }
  if (name.size() > kMaxShownBytes) text += "...";
  return text;
}

}  // namespace cubist
