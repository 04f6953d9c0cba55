#include "importer/meta_value.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

namespace cubist {

std::optional<std::uint64_t> parse_meta_number(const MetaValue& value) {
  if (value.kind != MetaValue::Kind::kNumber) return std::nullopt;
  std::string_view text = value.text;
  int base = 10;
  if (text.starts_with("0x") || text.starts_with("0X")) {
    text.remove_prefix(2);
    base = 16;
  }
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, base);
  if (error != std::errc() || rest == text.data()) return std::nullopt;
  const bool suffix_only =
      std::all_of(rest, end, [](char c) { return c == 'u' || c == 'U' || c == 'l' || c == 'L'; });
  return suffix_only ? std::optional(number) : std::nullopt;
}

std::optional<bool> parse_meta_flag(const MetaValue& value) {
  if (value.kind == MetaValue::Kind::kWord) {
    if (value.text == "true") return true;
    if (value.text == "false") return false;
    return std::nullopt;
  }
  const std::optional<std::uint64_t> number = parse_meta_number(value);
  if (!number || *number > 1) return std::nullopt;
  return *number == 1;
}

std::optional<std::uint64_t> parse_meta_count(const MetaValue& value, std::uint64_t max) {
  std::optional<std::uint64_t> number = parse_meta_number(value);
  if (!number) {  // a column that changed from bool to int
    if (const std::optional<bool> flag = parse_meta_flag(value)) number = *flag ? 1 : 0;
  }
  return number && *number <= max ? number : std::nullopt;
}

std::optional<Dtype> parse_meta_dtype(const MetaValue& value) {
  constexpr std::string_view kPrefix = "DATA_TYPE_";
  constexpr std::array<std::string_view, 9> kNames = {"FP16", "BF16", "FP32", "INT8",   "INT32",
                                                      "E4M3", "E5M2", "E2M1", "UNKNOWN"};
  if (value.kind != MetaValue::Kind::kWord || !value.text.starts_with(kPrefix)) return std::nullopt;
  const std::string_view name = value.text.substr(kPrefix.size());
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Dtype>(found - kNames.begin());
}

std::optional<SmArch> parse_meta_arch(const MetaValue& value) {
  std::uint64_t sm = 0;
  bool family = false;
  if (const std::optional<std::uint64_t> number = parse_meta_number(value)) {
    family = *number > 10000;
    sm = family ? *number - 10000 : *number;
  } else {
    constexpr std::string_view kPrefix = "kSM_";
    if (value.kind != MetaValue::Kind::kWord || !value.text.starts_with(kPrefix))
      return std::nullopt;
    const char* begin = value.text.data() + kPrefix.size();
    const char* end = value.text.data() + value.text.size();
    const auto [rest, error] = std::from_chars(begin, end, sm);
    const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
    if (error != std::errc() || (!suffix.empty() && suffix != "a" && suffix != "f")) {
      return std::nullopt;
    }
    family = suffix == "f";
  }
  if (sm < 50 || sm > 999) return std::nullopt;
  return SmArch{static_cast<std::uint16_t>(sm),
                family ? SmArch::Kind::kFamily : SmArch::Kind::kSpecific};
}

}  // namespace cubist
