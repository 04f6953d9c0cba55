#include "oci/base64.h"

#include <cstdint>

namespace cubist::oci {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::uint32_t> value_of(char c) {
  if (c == '-') c = '+';
  if (c == '_') c = '/';
  const std::size_t at = kAlphabet.find(c);
  if (at == std::string_view::npos) return std::nullopt;
  return static_cast<std::uint32_t>(at);
}

}  // namespace

std::optional<std::string> from_base64(std::string_view text) {
  for (int i = 0; i < 2 && text.ends_with('='); ++i) text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const auto value = value_of(c);
    if (!value) return std::nullopt;
    bits = (bits << 6 | *value) & 0xffff;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out += static_cast<char>(static_cast<std::uint8_t>(bits >> count));
  }
  return out;
}

}  // namespace cubist::oci
