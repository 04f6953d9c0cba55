#include "launcher/nvfp4_output.h"

#include <limits>
#include <set>

#include "model/derived_problem.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using launcher::nvfp4_scale_layout;

AttentionProblem problem(std::int32_t batch, std::int32_t heads, std::int32_t head_dim) {
  AttentionProblem p;
  p.dtype_q = p.dtype_k = p.dtype_v = Dtype::kE4m3;
  p.dtype_o = Dtype::kE2m1;
  p.num_q_heads = heads;
  p.head_dim_qk = head_dim;
  p.batch = batch;
  p.o_sf_scale = 300.0F;
  return with_derived_fields(p);
}

}  // namespace

TEST_CASE("block scales have a row a token and a column for 16 elements, padded to 128 by 4") {
  const auto one = nvfp4_scale_layout(problem(1, 64, 128));
  CHECK(one->rows == 128);
  CHECK(one->columns == 512);
  CHECK(one->size_bytes() == 65536);
  CHECK(nvfp4_scale_layout(problem(129, 64, 128))->rows == 256);
  CHECK(nvfp4_scale_layout(problem(1, 3, 64))->columns == 12);
  CHECK(nvfp4_scale_layout(problem(1, 1, 80))->columns == 8);  // 5 blocks
  AttentionProblem later = problem(100, 64, 128);
  later.o_sf_start_index = 28;
  CHECK(nvfp4_scale_layout(later)->rows == 128);
  later.o_sf_start_index = 29;
  CHECK(nvfp4_scale_layout(later)->rows == 256);
}

TEST_CASE("every scale has a byte of its own inside the tensor") {
  const auto layout = nvfp4_scale_layout(problem(200, 3, 64)).value();
  std::set<std::int64_t> taken;
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t column = 0; column < layout.columns; ++column) {
      taken.insert(layout.offset(row, column));
    }
  }
  CHECK(static_cast<std::int64_t>(taken.size()) == layout.size_bytes());
  CHECK(*taken.begin() == 0);
  CHECK(*taken.rbegin() == layout.size_bytes() - 1);
  // By hand from the documented layout: rows 32 apart share 16 bytes, columns 4 apart 512.
  CHECK(layout.offset(0, 1) == 1);
  CHECK(layout.offset(1, 0) == 16);
  CHECK(layout.offset(32, 0) == 4);
  CHECK(layout.offset(96, 3) == 15);
  CHECK(layout.offset(0, 4) == 512);
  CHECK(layout.offset(128, 0) == 3 * 512);
}

TEST_CASE("an nvfp4 output needs its scales, a global scale, and rows that fit") {
  const AttentionProblem good = problem(8, 64, 128);
  CHECK(launcher::check_nvfp4_output(good, 0x1000));
  const auto refused = [](const AttentionProblem& p, std::uint64_t o_sf, const char* words) {
    const Status status = launcher::check_nvfp4_output(p, o_sf);
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(status.error().message(), Catch::Contains(words));
  };
  refused(good, 0, "o_sf is 0x0; an nvfp4 output needs the address of 128 x 512 block scales");
  refused(good, 0x1008, "aligned to 16 bytes");
  for (const float scale : {0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    AttentionProblem p = good;
    p.o_sf_scale = scale;
    refused(p, 0x1000, "o_sf_scale is");
  }
  AttentionProblem odd = good;
  odd.o_sf_start_index = -1;
  refused(odd, 0x1000, "o_sf_start_index is -1");
  odd.o_sf_start_index = std::numeric_limits<std::int32_t>::max();
  refused(odd, 0x1000, "2^31 - 1");
  refused(problem(1, 1, 72), 0x1000, "multiple of 16");
  AttentionProblem bf16 = good;
  bf16.dtype_o = Dtype::kBf16;
  CHECK(launcher::check_nvfp4_output(bf16, 0));
  refused(bf16, 0x1000, "o_sf is given, but dtype_o is bf16");
  CHECK_FALSE(nvfp4_scale_layout(bf16));
}
