#include "document/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cubist {
namespace {

constexpr std::size_t kMaxShown = 80;

}  // namespace

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string in_quotes(std::string_view text) {
  std::string out = "'";
  for (const char character : text.substr(0, kMaxShown)) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte == 0x7f) {
      out += fmt::format("\\x{:02x}", byte);
    } else {
      out += character;
    }
  }
  out += text.size() > kMaxShown ? "...'" : "'";
  return out;
}

}  // namespace cubist
