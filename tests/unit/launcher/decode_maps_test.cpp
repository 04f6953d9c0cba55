#include "launcher/decode_maps.h"

#include "decode_call.h"
#include "support/catch.h"

using namespace cubist;
using launcher::describe_decode_maps;
using test::DecodeCall;

TEST_CASE("K and V are boxed as panels of 64 elements of one head's tokens of one page") {
  DecodeCall call;  // 64 heads of 64 over 8, HND, pages of 32
  const auto maps = describe_decode_maps(call.problem, call.plan, call.args);
  REQUIRE(maps.has_value());
  const TensorMapSpec& k = (*maps)[0];
  CHECK(k.slot == "k");
  CHECK(k.address == 0x20000);
  CHECK((*maps)[1].address == 0x30000);
  CHECK(k.type == TensorMapType::kBf16);
  CHECK(k.rank == 5);
  CHECK(k.dims == std::array<std::uint64_t, 5>{64, 32, 1, 8, 0x7fffffff});
  CHECK(k.strides == std::array<std::uint64_t, 4>{128, 128, 32 * 128, 8 * 32 * 128});
  CHECK(k.box == std::array<std::uint32_t, 5>{64, 32, 1, 1, 1});
  CHECK(k.swizzle == TensorMapSwizzle::k128B);
}

TEST_CASE("a box holds all panels of 64 tokens where the page has as many") {
  DecodeCall call;
  call.problem.head_dim_qk = call.problem.head_dim_vo = 128;
  call.problem.page_size = 128;
  call.problem.kv_stride_tokens = 8 * 128;
  call.problem.kv_stride_heads = 128;
  call.problem.kv_stride_batch = 128 * 8 * 128;
  const auto maps = describe_decode_maps(call.problem, call.plan, call.args);
  REQUIRE(maps.has_value());
  CHECK((*maps)[0].box == std::array<std::uint32_t, 5>{64, 64, 2, 1, 1});
  CHECK((*maps)[0].strides == std::array<std::uint64_t, 4>{2048, 128, 256, 128 * 2048});
}

TEST_CASE("e4m3 rows are boxed whole, swizzled by their own length") {
  DecodeCall call;
  call.problem.dtype_k = call.problem.dtype_v = Dtype::kE4m3;
  const auto short_rows = describe_decode_maps(call.problem, call.plan, call.args);
  REQUIRE(short_rows.has_value());
  const TensorMapSpec& k = (*short_rows)[0];
  CHECK(k.type == TensorMapType::kUint8);
  CHECK(k.dims == std::array<std::uint64_t, 5>{64, 32, 1, 8, 0x7fffffff});
  CHECK(k.strides == std::array<std::uint64_t, 4>{64, 64, 32 * 64, 8 * 32 * 64});
  CHECK(k.box == std::array<std::uint32_t, 5>{64, 32, 1, 1, 1});
  CHECK(k.swizzle == TensorMapSwizzle::k64B);
  call.problem.head_dim_qk = call.problem.head_dim_vo = 128;
  call.problem.kv_stride_tokens = 128;
  call.problem.kv_stride_heads = 32 * 128;
  call.problem.kv_stride_batch = 8 * 32 * 128;
  const auto long_rows = describe_decode_maps(call.problem, call.plan, call.args);
  REQUIRE(long_rows.has_value());
  CHECK((*long_rows)[1].dims == std::array<std::uint64_t, 5>{128, 32, 1, 8, 0x7fffffff});
  CHECK((*long_rows)[1].box == std::array<std::uint32_t, 5>{128, 32, 1, 1, 1});
  CHECK((*long_rows)[1].swizzle == TensorMapSwizzle::k128B);
}

TEST_CASE("MLA keys are boxed a panel at a time, and queries as a CTA's heads and tokens") {
  DecodeCall call;
  call.record.traits.reuse_smem_k_for_v = true;
  call.problem.head_dim_qk = 576;
  call.problem.head_dim_vo = 512;
  call.problem.num_q_heads = 16;
  call.problem.num_kv_heads = 1;
  call.problem.page_size = 64;
  call.problem.kv_stride_tokens = call.problem.kv_stride_heads = 576;
  call.problem.kv_stride_batch = 64 * 576;
  call.problem.q_stride_heads = 576;
  call.problem.q_stride_tokens = 16 * 576;
  call.plan.num_heads_per_cta = 16;
  const auto maps = describe_decode_maps(call.problem, call.plan, call.args);
  REQUIRE(maps.has_value());
  const TensorMapSpec& k = (*maps)[0];
  CHECK(k.dims == std::array<std::uint64_t, 5>{64, 64, 9, 1, 0x7fffffff});
  CHECK(k.strides == std::array<std::uint64_t, 4>{1152, 128, 1152, 64 * 1152});
  CHECK(k.box == std::array<std::uint32_t, 5>{64, 64, 1, 1, 1});
  const TensorMapSpec& q = (*maps)[1];
  CHECK(q.slot == "q");
  CHECK(q.address == 0x10000);
  CHECK(q.dims == std::array<std::uint64_t, 5>{64, 16, 8, 9, 1});
  CHECK(q.strides == std::array<std::uint64_t, 4>{1152, 16 * 1152, 128, 16 * 1152});
  CHECK(q.box == std::array<std::uint32_t, 5>{64, 16, 4, 1, 1});
}

TEST_CASE("a stride that no tensor map holds is refused with the tensor's name") {
  DecodeCall call;
  call.problem.kv_stride_tokens = 68;
  const auto maps = describe_decode_maps(call.problem, call.plan, call.args);
  REQUIRE_FALSE(maps.has_value());
  CHECK(maps.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(maps.error().message(), Catch::Matchers::Contains("tensor 'k'"));
}
