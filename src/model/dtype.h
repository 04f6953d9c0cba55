#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cubist {

/// Element types, in the order of the published metadata's enum.
enum class Dtype : std::uint8_t {
  kFp16 = 0,
  kBf16 = 1,
  kFp32 = 2,
  kInt8 = 3,
  kInt32 = 4,
  kE4m3 = 5,
  kE5m2 = 6,
  kE2m1 = 7,
  kUnknown = 8,
};

/// "fp16", "bf16", "fp32", "int8", "int32", "e4m3", "e5m2", "e2m1", "unknown".
std::string_view to_string(Dtype dtype);
std::optional<Dtype> parse_dtype(std::string_view text);

/// Bits of one element: 4 for e2m1; 0 for unknown.
std::uint32_t dtype_bits(Dtype dtype);

}  // namespace cubist
