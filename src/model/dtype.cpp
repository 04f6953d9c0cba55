#include "model/dtype.h"

#include <array>
#include <cstddef>

namespace cubist {
namespace {

constexpr std::array<std::string_view, 9> kNames = {"fp16", "bf16", "fp32", "int8",   "int32",
                                                    "e4m3", "e5m2", "e2m1", "unknown"};
constexpr std::array<std::uint32_t, 9> kBits = {16, 16, 32, 8, 32, 8, 8, 4, 0};

}  // namespace

std::string_view to_string(Dtype dtype) { return kNames[static_cast<std::size_t>(dtype)]; }

std::optional<Dtype> parse_dtype(std::string_view text) {
  for (std::size_t i = 0; i + 1 < kNames.size(); ++i) {
    if (kNames[i] == text) return static_cast<Dtype>(i);
  }
  return std::nullopt;
}

std::uint32_t dtype_bits(Dtype dtype) { return kBits[static_cast<std::size_t>(dtype)]; }

}  // namespace cubist
