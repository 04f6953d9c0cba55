#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "driver/cuda_abi.h"

namespace cubist::test {

/// What the stand-in's cuTensorMapEncodeTiled was asked for, laid down in the 128 bytes that a real
/// driver encodes in its own way. Unused dimensions are 0.
struct FakeTensorMap {
  std::uint64_t address = 0;
  std::uint32_t type = 0;
  std::uint32_t rank = 0;
  std::uint32_t swizzle = 0;
  std::uint32_t interleave = 0;
  std::uint32_t l2_promotion = 0;
  std::uint32_t oob_fill = 0;
  std::array<std::uint64_t, 5> dims{};
  std::array<std::uint64_t, 4> strides{};
  std::array<std::uint16_t, 5> box{};
  std::array<std::uint8_t, 5> element_strides{};

  bool operator==(const FakeTensorMap&) const = default;
};
static_assert(sizeof(FakeTensorMap) <= sizeof(cuda::CUtensorMap));

/// The descriptor at these bytes of a parameter block.
inline FakeTensorMap read_fake_tensor_map(const std::uint8_t* bytes) {
  FakeTensorMap map;
  std::memcpy(static_cast<void*>(&map), bytes, sizeof(map));
  return map;
}

}  // namespace cubist::test
