#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cubist::trust {

/// What to do about something that is not as it should be but harms nobody by itself.
enum class Policy : std::uint8_t { kAllow, kWarn, kRefuse };

/// "allow", "warn", "refuse"; nothing for any other word.
constexpr std::optional<Policy> parse_policy(std::string_view word) {
  if (word == "allow") return Policy::kAllow;
  if (word == "warn") return Policy::kWarn;
  if (word == "refuse") return Policy::kRefuse;
  return std::nullopt;
}

constexpr std::string_view to_string(Policy policy) {
  return policy == Policy::kAllow ? "allow" : policy == Policy::kWarn ? "warn" : "refuse";
}

}  // namespace cubist::trust
