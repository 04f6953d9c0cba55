#include "launcher/tensor_map_spec.h"

namespace cubist {
namespace {

constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;

std::uint32_t swizzle_span_bytes(TensorMapSwizzle swizzle) {
  switch (swizzle) {
    case TensorMapSwizzle::k32B:
      return 32;
    case TensorMapSwizzle::k64B:
      return 64;
    case TensorMapSwizzle::k128B:
      return 128;
    case TensorMapSwizzle::kNone:
      break;
  }
  return 0;
}

}  // namespace

std::uint32_t tensor_map_bits(TensorMapType type) {
  switch (type) {
    case TensorMapType::kUint8:
      return 8;
    case TensorMapType::kFp16:
    case TensorMapType::kBf16:
      return 16;
    case TensorMapType::kPackedFp4:
      return 4;
  }
  return 0;
}

Status check_tensor_map(const TensorMapSpec& spec) {
  const auto refuse = [&](std::string_view what, std::uint64_t value, std::string_view rule) {
    return fail(StatusCode::kInvalidArgument, "tensor '{}': {} {}: {}", spec.slot, what, value,
                rule);
  };
  if (spec.rank < 1 || spec.rank > TensorMapSpec::kMaxRank) {
    return refuse("rank", spec.rank, "must be 1 to 5");
  }
  // 4-bit elements are stored 16 to 8 bytes and widened on the way; the driver wants more
  // alignment.
  const std::uint64_t alignment = spec.type == TensorMapType::kPackedFp4 ? 32 : 16;
  if (spec.address == 0 || spec.address % alignment != 0) {
    return refuse("address", spec.address,
                  "must be a device address aligned to 16 bytes (32 for FP4)");
  }
  for (std::uint32_t i = 0; i < spec.rank; ++i) {
    if (spec.dims[i] < 1 || spec.dims[i] > kMaxExtent) {
      return refuse(fmt::format("extent of dimension {}", i), spec.dims[i], "must be 1 to 2^32");
    }
    if (spec.box[i] < 1 || spec.box[i] > kMaxBox) {
      return refuse(fmt::format("box of dimension {}", i), spec.box[i], "must be 1 to 256");
    }
  }
  for (std::uint32_t i = 0; i + 1 < spec.rank; ++i) {
    if (spec.strides[i] % alignment != 0 || spec.strides[i] >= kMaxStride) {
      return refuse(fmt::format("stride of dimension {} in bytes", i + 1), spec.strides[i],
                    "must be a multiple of 16 (32 for FP4) below 2^40");
    }
  }
  const std::uint32_t bits =
      spec.type == TensorMapType::kPackedFp4 ? 8 : tensor_map_bits(spec.type);
  const std::uint32_t row_bytes = spec.box[0] * bits / 8;
  if (row_bytes % 16 != 0)
    return refuse("bytes of a box row", row_bytes, "must be a multiple of 16");
  const std::uint32_t span = swizzle_span_bytes(spec.swizzle);
  if (span != 0 && row_bytes > span) {
    return refuse("bytes of a box row", row_bytes, "must not exceed the swizzle span");
  }
  return {};
}

}  // namespace cubist
