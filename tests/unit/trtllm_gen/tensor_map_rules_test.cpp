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

}  // namespace

TEST_CASE("a descriptor inside the driver's rules passes") {
  CHECK(cubist::check_tensor_map(good()));
  TensorMapSpec edge = good();
  edge.dims[3] = std::uint64_t{1} << 32;
  edge.box[1] = 256;
  CHECK(cubist::check_tensor_map(edge));
}

TEST_CASE("each broken rule is refused, naming tensor and rule") {
  struct Row {
    std::function<void(TensorMapSpec&)> change;
    const char* phrase;
  };
  const Row rows[] = {
      {[](TensorMapSpec& s) { s.rank = 0; }, "rank 0"},
      {[](TensorMapSpec& s) { s.rank = 6; }, "rank 6"},
      {[](TensorMapSpec& s) { s.address = 0; }, "address 0"},
      {[](TensorMapSpec& s) { s.address = 0x1008; }, "aligned to 16"},
      {[](TensorMapSpec& s) { s.type = TensorMapType::kPackedFp4, s.address = 0x1010; },
       "32 for FP4"},
      {[](TensorMapSpec& s) { s.dims[2] = 0; }, "extent of dimension 2 0"},
      {[](TensorMapSpec& s) { s.dims[0] = (std::uint64_t{1} << 32) + 1; }, "1 to 2^32"},
      {[](TensorMapSpec& s) { s.box[1] = 0; }, "box of dimension 1 0"},
      {[](TensorMapSpec& s) { s.box[1] = 257; }, "1 to 256"},
      {[](TensorMapSpec& s) { s.strides[0] = 264; }, "multiple of 16"},
      {[](TensorMapSpec& s) { s.strides[2] = std::uint64_t{1} << 40; }, "below 2^40"},
      {[](TensorMapSpec& s) { s.box[0] = 4; }, "bytes of a box row 8"},
      {[](TensorMapSpec& s) { s.box[0] = 128; }, "swizzle span"},
  };
  for (const Row& row : rows) {
    INFO(row.phrase);
    TensorMapSpec spec = good();
    row.change(spec);
    const auto checked = cubist::check_tensor_map(spec);
    REQUIRE_FALSE(checked);
    CHECK(checked.error().code() == cubist::StatusCode::kInvalidArgument);
    CHECK_THAT(checked.error().message(), Catch::Contains("tensor 'k'"));
    CHECK_THAT(checked.error().message(), Catch::Contains(row.phrase));
  }
}
