#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace cubist {

// CUDA versions are numbered as cuDriverGetVersion does: 1000 * major + 10 * minor.

inline constexpr std::int32_t kMaxCudaMajor = 25;

/// "13.0" for 13000.
std::string cuda_version_text(std::int32_t version);

/// 13000 for "13.0". Nothing but major (1 to kMaxCudaMajor), a dot and one digit is a version.
std::optional<std::int32_t> parse_cuda_version(std::string_view text);

}  // namespace cubist
