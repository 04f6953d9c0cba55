#include "base/base64.h"

#include <array>

namespace cubist {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNoDigit = 64;

constexpr std::array<std::uint8_t, 256> digit_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::uint8_t i = 0; i < 64; ++i) values[static_cast<unsigned char>(kDigits[i])] = i;
  return values;
}

constexpr std::array<std::uint8_t, 256> kValues = digit_values();

}  // namespace

std::string to_base64(std::span<const std::uint8_t> bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    const std::uint32_t group = static_cast<std::uint32_t>(bytes[at]) << 16 |
                                (left > 1 ? static_cast<std::uint32_t>(bytes[at + 1]) << 8 : 0) |
                                (left > 2 ? bytes[at + 2] : 0U);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += left > 1 ? kDigits[group >> 6 & 63] : '=';
    out += left > 2 ? kDigits[group & 63] : '=';
  }
  return out;
}

std::optional<std::vector<std::uint8_t>> parse_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::string_view digits = text.substr(0, text.size() - padding);
  std::vector<std::uint8_t> out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;  // the lowest `have` of them are still to be handed out
  unsigned have = 0;
  for (const char character : digits) {
    const std::uint8_t value = kValues[static_cast<unsigned char>(character)];
    if (value == kNoDigit) return std::nullopt;
    bits = (bits << 6 | value) & 0xfff;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out.push_back(static_cast<std::uint8_t>(bits >> have));
  }
  if ((bits & ((1U << have) - 1)) != 0) return std::nullopt;
  return out;
}

}  // namespace cubist
