#include "model/cuda_version.h"

#include <charconv>

#include <fmt/format.h>

namespace cubist {

std::string cuda_version_text(std::int32_t version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::optional<std::int32_t> parse_cuda_version(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos || text.front() == '0') return std::nullopt;
  std::int32_t major = 0;
  const char* const end = text.data() + dot;
  const auto [rest, error] = std::from_chars(text.data(), end, major);
  if (error != std::errc() || rest != end || major < 1 || major > kMaxCudaMajor) {
    return std::nullopt;
  }
  const std::string_view minor = text.substr(dot + 1);
  if (minor.size() != 1 || minor[0] < '0' || minor[0] > '9') return std::nullopt;
  return major * 1000 + (minor[0] - '0') * 10;
}

}  // namespace cubist
