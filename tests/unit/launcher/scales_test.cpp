#include "launcher/scales.h"

#include <cmath>
#include <limits>

#include "support/catch.h"

using namespace cubist;
using Catch::Matchers::Contains;
using launcher::CallArgs;
using launcher::fuse_scales;

namespace {

AttentionProblem gqa(Dtype kv = Dtype::kBf16) {
  AttentionProblem problem;
  problem.head_dim_qk = 128;
  problem.head_dim_vo = 128;
  problem.dtype_k = kv;
  problem.dtype_v = kv;
  return problem;
}

float one_over_sqrt(double head_size) { return static_cast<float>(1.0 / std::sqrt(head_size)); }

std::string refusal(const AttentionProblem& problem, const CallArgs& args) {
  const auto fused = fuse_scales(problem, args);
  REQUIRE_FALSE(fused.has_value());
  CHECK(fused.error().code() == StatusCode::kInvalidArgument);
  return fused.error().message();
}

}  // namespace

TEST_CASE("scales fuse in float32 in one order, with log2(e) applied once") {
  CallArgs args;
  args.scales = {1.1F, 0.7F, 0.3F, 0.09F, 1.7F};
  const auto fused = fuse_scales(gqa(Dtype::kE4m3), args);
  REQUIRE(fused.has_value());
  const float bmm1 = 1.1F * 0.7F * 0.09F;
  CHECK(fused->bmm1_log2 == static_cast<float>(double{bmm1} * 1.4426950408889634));
  CHECK(fused->bmm2 == 0.3F * 1.7F);
}

TEST_CASE("a softmax scale that is left out is 1/sqrt(head size before absorption)") {
  CHECK(launcher::default_sm_scale(gqa()).value() == one_over_sqrt(128));
  AttentionProblem mla = gqa();
  mla.is_mla = true;
  mla.head_dim_qk = 576;
  mla.head_dim_vo = 512;
  CHECK(launcher::default_sm_scale(mla).value() == one_over_sqrt(192));
  mla.head_dim_qk = 320;
  mla.head_dim_vo = 256;
  CHECK(launcher::default_sm_scale(mla).value() == one_over_sqrt(128));
  AttentionProblem ragged = gqa();
  ragged.head_dim_qk = 192;
  CHECK(launcher::default_sm_scale(ragged).value() == one_over_sqrt(192));
}

TEST_CASE("an MLA shape whose head size nobody can know needs its softmax scale") {
  AttentionProblem mla = gqa();
  mla.is_mla = true;
  mla.head_dim_qk = 448;
  mla.head_dim_vo = 384;
  CHECK_THAT(refusal(mla, {}), Contains("give sm_scale"));
  CallArgs args;
  args.scales.sm_scale = 0.125F;
  CHECK(fuse_scales(mla, args).has_value());
}

TEST_CASE("k_scale and v_scale belong to a quantised KV cache") {
  CallArgs args;
  args.scales.k_scale = 0.5F;
  CHECK_THAT(refusal(gqa(Dtype::kBf16), args), Contains("k_scale is 0.5") && Contains("bf16"));
  CHECK_THAT(refusal(gqa(Dtype::kFp16), args), Contains("k_scale"));
  CHECK(fuse_scales(gqa(Dtype::kE4m3), args).has_value());
  CHECK(fuse_scales(gqa(Dtype::kE2m1), args).has_value());
  args.scales.k_scale = 1.0F;
  args.scales.v_scale = 2.0F;
  CHECK_THAT(refusal(gqa(Dtype::kBf16), args), Contains("v_scale is 2"));
}

TEST_CASE("a scale that is 0, infinite or not a number is refused by name") {
  for (const float bad : {0.0F, INFINITY, NAN}) {
    CallArgs args;
    args.scales.q_scale = bad;
    CHECK_THAT(refusal(gqa(), args), Contains("q_scale is"));
    args = {};
    args.scales.o_scale = bad;
    CHECK_THAT(refusal(gqa(), args), Contains("o_scale is"));
  }
  CallArgs args;
  args.scales.sm_scale = NAN;
  CHECK_THAT(refusal(gqa(), args), Contains("sm_scale is"));
  args.scales.sm_scale = 1e-30F;
  args.scales.q_scale = 1e-30F;
  CHECK_THAT(refusal(gqa(), args), Contains("q_scale * k_scale * sm_scale is 0"));
}

TEST_CASE("a device scalar and the host scales it replaces are not both taken") {
  CallArgs args;
  args.bmm1_scale_log2 = 0x1000;
  CHECK(fuse_scales(gqa(), args).has_value());
  args.scales.sm_scale = 0.1F;
  CHECK_THAT(refusal(gqa(), args), Contains("both bmm1_scale_log2 and host scales"));
  args = {};
  args.bmm2_scale = 0x1000;
  args.scales.o_scale = 0.1F;
  CHECK_THAT(refusal(gqa(), args), Contains("both bmm2_scale and host scales"));
}
