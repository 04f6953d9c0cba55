#include "base/hex.h"

#include <array>

namespace cubist {
namespace {

constexpr std::uint8_t kNoHexDigit = 0xff;

/// A digest of 64 digits for every kernel of a manifest: one look a digit, and no branch.
constexpr std::array<std::uint8_t, 256> kDigitValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoHexDigit);
  for (std::uint8_t digit = 0; digit < 16; ++digit) {
    values[static_cast<std::uint8_t>("0123456789abcdef"[digit])] = digit;
    values[static_cast<std::uint8_t>("0123456789ABCDEF"[digit])] = digit;
  }
  return values;
}();

std::uint8_t digit_value(char c) { return kDigitValues[static_cast<std::uint8_t>(c)]; }

}  // namespace

std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

bool parse_hex(std::string_view text, std::span<std::uint8_t> out) {
  if (text.size() != out.size() * 2) return false;
  std::uint8_t seen = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint8_t high = digit_value(text[2 * i]);
    const std::uint8_t low = digit_value(text[2 * i + 1]);
    seen = static_cast<std::uint8_t>(seen | high | low);
    out[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return seen < 16;
}

}  // namespace cubist
