#include "manifest/text.h"

#include <fmt/format.h>

namespace cubist {
namespace {

constexpr std::size_t kMaxShown = 120;

bool is_control(char character) {
  const auto byte = static_cast<unsigned char>(character);
  return byte < 0x20 || byte == 0x7f;
}

/// Up to max_length bytes, never ending inside a UTF-8 sequence.
std::string_view shorten(std::string_view text, std::size_t max_length) {
  if (text.size() <= max_length) return text;
  std::size_t length = max_length;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0) == 0x80) --length;
  return text.substr(0, length);
}

void append_visible(std::string& out, char character) {
  if (is_control(character)) {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(character));
  } else {
    out += character;
  }
}

}  // namespace

std::string shown(std::string_view text) {
  const std::string_view kept = shorten(text, kMaxShown);
  std::string out = "'";
  for (const char character : kept) append_visible(out, character);
  out += kept.size() < text.size() ? fmt::format("...' ({} bytes)", text.size()) : "'";
  return out;
}

std::string visible(std::string_view text, std::size_t max_length) {
  std::string out;
  for (const char character : shorten(text, max_length)) append_visible(out, character);
  return out;
}

std::string pointer_step(std::string_view key) {
  const std::string_view kept = shorten(key, kMaxShown);
  std::string out;
  for (const char character : kept) {
    if (character == '~') {
      out += "~0";
    } else if (character == '/') {
      out += "~1";
    } else {
      append_visible(out, character);
    }
  }
  if (kept.size() < key.size()) out += "...";
  return out;
}

std::size_t find_control(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(text[i])) return i;
  }
  return std::string_view::npos;
}

}  // namespace cubist
