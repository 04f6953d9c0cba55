#include <functional>

#include "launcher/tensor_map_spec.h"
#include "support/catch.h"

namespace {

using cubist::TensorMapSpec;
using cubist::TensorMapSwizzle;
using cubist::TensorMapType;

TensorMapSpec good() {
  return {.slot = "k",
          .address = 0x1000,
          .type = TensorMapType::kBf16,
          .rank = 4,
          .dims = {128, 32, 8, 512},
          .strides = {256, 8192, 65536},
          .box = {64, 32, 1, 1},
          .swizzle = TensorMapSwizzle::k128B};
}

/// FP4 that the copy engine widens.
TensorMapSpec good_packed() {
  TensorMapSpec spec = good();
  spec.type = TensorMapType::kPackedFp4;
  spec.dims[0] = 256;
  spec.strides = {128, 4096, 32768};
  spec.box[0] = 128;
  return spec;
}

}  // namespace

TEST_CASE("a descriptor inside the driver's rules passes") {
  CHECK(cubist::check_tensor_map(good()));
  TensorMapSpec edge = good();
  edge.dims[3] = std::uint64_t{1} << 32;
  edge.box[1] = 256;
  CHECK(cubist::check_tensor_map(edge));
  TensorMapSpec packed = good_packed();
  CHECK(cubist::check_tensor_map(packed));
  packed.swizzle = TensorMapSwizzle::kNone;
  CHECK(cubist::check_tensor_map(packed));
}

TEST_CASE("each broken rule is refused, naming tensor and rule") {
  const TensorMapSpec bf16 = good();
  const TensorMapSpec packed = good_packed();
  struct Row {
    TensorMapSpec start;
    std::function<void(TensorMapSpec&)> change;
    const char* phrase;
  };
  const Row rows[] = {
      {bf16, [](TensorMapSpec& s) { s.rank = 0; }, "rank 0: must be 1 to 5"},
      {bf16, [](TensorMapSpec& s) { s.rank = 6; }, "rank 6: must be 1 to 5"},
      {bf16, [](TensorMapSpec& s) { s.address = 0; }, "address 0x0"},
      {bf16, [](TensorMapSpec& s) { s.address = 0x1008; }, "address 0x1008: must be a device"},
      {bf16, [](TensorMapSpec& s) { s.dims[2] = 0; }, "extent of dimension 2 0: must be 1 to 2^32"},
      {bf16, [](TensorMapSpec& s) { s.dims[0] = (std::uint64_t{1} << 32) + 1; }, "1 to 2^32"},
      {bf16, [](TensorMapSpec& s) { s.strides[0] = 264; }, "stride of dimension 1 in bytes 264"},
      {bf16, [](TensorMapSpec& s) { s.strides[2] = std::uint64_t{1} << 40; }, "below 2^40"},
      {bf16, [](TensorMapSpec& s) { s.box[1] = 0; }, "box of dimension 1 0: must be 1 to 256"},
      {bf16, [](TensorMapSpec& s) { s.box[1] = 257; }, "box of dimension 1 257: must be 1 to 256"},
      {bf16, [](TensorMapSpec& s) { s.box[0] = 4; }, "bytes of a box row 8: must be a multiple"},
      {bf16, [](TensorMapSpec& s) { s.box[0] = 128; }, "must not exceed the swizzle span of 128"},
      {bf16, [](TensorMapSpec& s) { s.swizzle = TensorMapSwizzle::k64B; }, "swizzle span of 64"},
      {bf16, [](TensorMapSpec& s) { s.swizzle = TensorMapSwizzle::k32B; }, "swizzle span of 32"},
      {packed, [](TensorMapSpec& s) { s.address = 0x1010; }, "32 for packed FP4"},
      {packed, [](TensorMapSpec& s) { s.dims[0] = 192; }, "extent of dimension 0 192: must be a"},
      {packed, [](TensorMapSpec& s) { s.strides[1] = 4112; },
       "stride of dimension 2 in bytes 4112"},
      {packed, [](TensorMapSpec& s) { s.box[0] = 64; }, "box of dimension 0 64: must be 128"},
      {packed, [](TensorMapSpec& s) { s.swizzle = TensorMapSwizzle::k64B; }, "swizzle span of 64"},
  };
  for (const Row& row : rows) {
    INFO(row.phrase);
    TensorMapSpec spec = row.start;
    row.change(spec);
    const auto checked = cubist::check_tensor_map(spec);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code() == cubist::StatusCode::kInvalidArgument);
    CHECK_THAT(checked.error().message(), Catch::Contains("tensor 'k'"));
    CHECK_THAT(checked.error().message(), Catch::Contains(row.phrase));
  }
}
