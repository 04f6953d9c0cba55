#include "flag_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

namespace cubist::tools {
namespace {

template <class Number>
std::string check_whole(const std::string& text) {
  using Limits = std::numeric_limits<Number>;
  Number number = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc() && end == last) return {};
  return fmt::format("'{}' is not a whole number from {} to {}", text, Limits::min(),
                     Limits::max());
}

std::string check_finite(const std::string& text, const std::string& range) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && std::isfinite(number)) return {};
  return fmt::format("'{}' is not a finite number{}{}", text, range.empty() ? "" : ", ", range);
}

std::string check_value(const std::string& text, std::string_view type, const std::string& range) {
  if (text.empty()) return "an empty value; give one, or leave the flag out";
  if (type == "UINT") return check_whole<std::uint64_t>(text);
  if (type == "INT") return check_whole<std::int64_t>(text);
  if (type == "FLOAT") return check_finite(text, range);
  return {};
}

}  // namespace

void refuse_odd_values(CLI::App& app) {
  for (CLI::Option* option : app.get_options()) {
    if (option->get_items_expected_max() == 0) continue;  // a flag without a value
    const std::string name = option->get_type_name();     // "FLOAT:FLOAT in [0.01 - 86400]"
    const std::size_t colon = std::min(name.find(':'), name.size());
    const std::string type = name.substr(0, colon);
    const std::string range = name.substr(std::min(colon + 1, name.size()));
    option->check(
        [type, range](const std::string& text) { return check_value(text, type, range); });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
    refuse_odd_values(*command);
  }
}

}  // namespace cubist::tools
