#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace cubist {

/// CUtensorMapDataType values that are used here.
enum class TensorMapType : std::uint32_t { kUint8 = 0, kFp16 = 6, kBf16 = 9, kPackedFp4 = 14 };

/// CUtensorMapSwizzle.
enum class TensorMapSwizzle : std::uint32_t { kNone = 0, k32B = 1, k64B = 2, k128B = 3 };

/// The arguments of one cuTensorMapEncodeTiled call, before it is made: comparable, printable, and
/// checked by our own rules first. Element strides are 1, no interleave, L2 promotion 128 B, out of
/// bounds reads give zero.
struct TensorMapSpec {
  static constexpr std::uint32_t kMaxRank = 5;

  std::string_view slot;  ///< "q", "k", "k_swa_pool", "v", "o", "k_sf", "v_sf"
  std::uint64_t address = 0;
  TensorMapType type = TensorMapType::kUint8;
  std::uint32_t rank = 0;
  std::array<std::uint64_t, kMaxRank> dims{};         ///< elements, fastest first
  std::array<std::uint64_t, kMaxRank - 1> strides{};  ///< bytes, of dims 1..rank-1
  std::array<std::uint32_t, kMaxRank> box{};          ///< elements
  TensorMapSwizzle swizzle = TensorMapSwizzle::kNone;

  bool operator==(const TensorMapSpec&) const = default;
};

/// Bytes of one element of the box in memory (two packed FP4 elements share one).
std::uint32_t tensor_map_bits(TensorMapType type);

/// The driver's rules for a tiled descriptor, in this order:
///
///   rank     1 to 5
///   address  not 0, aligned to 16 bytes; packed FP4: 32
///   extents  1 to 2^32; packed FP4: the first a multiple of 128
///   strides  multiples of 16 bytes, packed FP4: 32, below 2^40
///   box      1 to 256 each; packed FP4: the first is 128; a row is a multiple of 16 bytes and no
///            longer than the swizzle span
///
/// Source: CUDA driver API, cuTensorMapEncodeTiled.
/// errors  kInvalidArgument: names the tensor, the value and the rule
Status check_tensor_map(const TensorMapSpec& spec);

}  // namespace cubist
