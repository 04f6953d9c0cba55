#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cubist {

/// A whole number as people write lengths: "4096", "-1", or with k (or K) for 1,024 behind it:
/// "32k". Nothing for any other text and for what does not fit 64 bits.
std::optional<std::int64_t> parse_count(std::string_view text);

}  // namespace cubist
