#include "launcher/tensor_map_spec.h"

namespace cubist {
namespace {

constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;
constexpr std::uint32_t kMaxBox = 256;
// Elements of a row of packed FP4, and its bytes in shared memory.
constexpr std::uint32_t kPackedRow = 128;

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

/// 4-bit elements that the copy engine widens: 16 of them, 8 bytes, become 16 bytes.
bool is_packed(const TensorMapSpec& spec) { return spec.type == TensorMapType::kPackedFp4; }

template <class Value>
tl::unexpected<Error> refuse(const TensorMapSpec& spec, std::string_view what, const Value& value,
                             std::string_view rule) {
  return fail(StatusCode::kInvalidArgument, "tensor '{}': {} {}: {}", spec.slot, what, value, rule);
}

Status check_address(const TensorMapSpec& spec) {
  const std::uint64_t alignment = is_packed(spec) ? 32 : 16;
  if (spec.address != 0 && spec.address % alignment == 0) return {};
  return refuse(spec, "address", fmt::format("{:#x}", spec.address),
                "must be a device address aligned to 16 bytes (32 for packed FP4)");
}

Status check_extents(const TensorMapSpec& spec) {
  for (std::uint32_t i = 0; i < spec.rank; ++i) {
    if (spec.dims[i] < 1 || spec.dims[i] > kMaxExtent) {
      return refuse(spec, fmt::format("extent of dimension {}", i), spec.dims[i],
                    "must be 1 to 2^32");
    }
  }
  if (!is_packed(spec) || spec.dims[0] % kPackedRow == 0) return {};
  return refuse(spec, "extent of dimension 0", spec.dims[0],
                "must be a multiple of 128 for packed FP4");
}

Status check_strides(const TensorMapSpec& spec) {
  const std::uint64_t alignment = is_packed(spec) ? 32 : 16;
  for (std::uint32_t i = 0; i + 1 < spec.rank; ++i) {
    if (spec.strides[i] % alignment == 0 && spec.strides[i] < kMaxStride) continue;
    return refuse(spec, fmt::format("stride of dimension {} in bytes", i + 1), spec.strides[i],
                  "must be a multiple of 16 (32 for packed FP4) below 2^40");
  }
  return {};
}

Status check_box(const TensorMapSpec& spec) {
  for (std::uint32_t i = 0; i < spec.rank; ++i) {
    if (spec.box[i] < 1 || spec.box[i] > kMaxBox) {
      return refuse(spec, fmt::format("box of dimension {}", i), spec.box[i], "must be 1 to 256");
    }
  }
  if (is_packed(spec) && spec.box[0] != kPackedRow) {
    return refuse(spec, "box of dimension 0", spec.box[0], "must be 128 for packed FP4");
  }
  const std::uint32_t bits = is_packed(spec) ? 8 : tensor_map_bits(spec.type);
  const std::uint32_t row_bytes = spec.box[0] * bits / 8;
  if (row_bytes % 16 != 0) {
    return refuse(spec, "bytes of a box row", row_bytes, "must be a multiple of 16");
  }
  const std::uint32_t span = swizzle_span_bytes(spec.swizzle);
  if (span != 0 && row_bytes > span) {
    return refuse(spec, "bytes of a box row", row_bytes,
                  fmt::format("must not exceed the swizzle span of {}", span));
  }
  return {};
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
  if (spec.rank < 1 || spec.rank > TensorMapSpec::kMaxRank) {
    return refuse(spec, "rank", spec.rank, "must be 1 to 5");
  }
  CUBIST_RETURN_IF_ERROR(check_address(spec));
  CUBIST_RETURN_IF_ERROR(check_extents(spec));
  CUBIST_RETURN_IF_ERROR(check_strides(spec));
  return check_box(spec);
}

}  // namespace cubist
