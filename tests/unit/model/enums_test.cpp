#include "model/enums.h"

#include "model/dtype.h"
#include "support/catch.h"

TEST_CASE("every enum word reads back as itself") {
  for (std::uint8_t i = 0; i < 8; ++i) {
    const auto dtype = static_cast<cubist::Dtype>(i);
    CHECK(cubist::parse_dtype(cubist::to_string(dtype)) == dtype);
  }
  for (std::uint8_t i = 0; i < 4; ++i) {
    const auto mode = static_cast<cubist::MultiCtasKvMode>(i);
    CHECK(cubist::parse_multi_ctas_kv_mode(cubist::to_string(mode)) == mode);
    const auto mask = static_cast<cubist::MaskType>(i);
    CHECK(cubist::parse_mask_type(cubist::to_string(mask)) == mask);
    const auto layout = static_cast<cubist::ParamLayout>(i);
    CHECK(cubist::parse_param_layout(cubist::to_string(layout)) == layout);
    CHECK(cubist::param_layout_bytes(layout) > 0);
  }
  for (std::uint8_t i = 0; i < 8; ++i) {
    const auto layout = static_cast<cubist::ParamLayout>(i);
    CHECK(cubist::parse_param_layout(cubist::to_string(layout)) == layout);
  }
  for (std::uint8_t i = 0; i < 3; ++i) {
    const auto family = static_cast<cubist::KernelFamily>(i);
    CHECK(cubist::parse_kernel_family(cubist::to_string(family)) == family);
  }
  CHECK_FALSE(cubist::parse_dtype("unknown").has_value());
  CHECK_FALSE(cubist::parse_dtype("BF16").has_value());
  CHECK_FALSE(cubist::parse_phase("").has_value());
}

TEST_CASE("a dtype knows its bits") {
  CHECK(cubist::dtype_bits(cubist::Dtype::kE2m1) == 4);
  CHECK(cubist::dtype_bits(cubist::Dtype::kE4m3) == 8);
  CHECK(cubist::dtype_bits(cubist::Dtype::kBf16) == 16);
}
