// The code of the aux kernels, compiled by the host compiler and run thread by thread.

#include <bit>
#include <cmath>
#include <limits>

#include "aux_on_host.h"
#include "convert.cuh"
#include "fuse_scales.cuh"
#include "gpu/random.h"
#include "launcher/scales.h"
#include "reference/number_formats.h"
#include "support/catch.h"

using namespace cubist;
using namespace cubist::test;

TEST_CASE("partial results of every tile, head size and type come together as attention") {
  for (const ReduceCase& made : reduce_cases(true)) {
    INFO(made.text());
    const PartialResults partial = partial_results(made);
    ReduceOnHost launch(made, partial);
    const ReduceErrors errors = check_reduction_output(made, partial, launch.run());
    CHECK(errors.failure == "");
    CHECK(launch.stray_bytes() == 0);
  }
}

TEST_CASE("a wrong partial result is noticed by the check") {
  ReduceCase made;
  made.columns = 64;
  made.kv_lens = {200};
  PartialResults partial = partial_results(made);
  partial.partial_stats[1] *= 1.01F;
  ReduceOnHost launch(made, partial);
  CHECK_THAT(check_reduction_output(made, partial, launch.run()).failure,
             Catch::Matchers::Contains("O["));
}

TEST_CASE("a sequence without keys gives zeros and an LSE of -inf") {
  ReduceCase made;
  made.columns = 64;
  made.kv_lens = {0};
  const PartialResults partial = partial_results(made);
  ReduceOnHost launch(made, partial);
  const ReduceOutput output = launch.run();
  for (const std::uint8_t byte : output.o) REQUIRE(byte == 0);
  for (const float lse : output.lse) REQUIRE(lse == -std::numeric_limits<float>::infinity());
}

TEST_CASE("conversions of the kernels agree with the number formats bit by bit") {
  const auto agrees = [](float value) {
    const auto expected = [&](Dtype dtype) { return encode_number(dtype, value); };
    if (std::isnan(value)) {
      return std::isnan(decode_number(Dtype::kE4m3,
                                      static_cast<std::uint16_t>(cubist_aux::e4m3_from(value)))) &&
             std::isnan(decode_number(Dtype::kFp16,
                                      static_cast<std::uint16_t>(cubist_aux::fp16_from(value))));
    }
    return cubist_aux::bf16_from(value) == expected(Dtype::kBf16) &&
           cubist_aux::fp16_from(value) == expected(Dtype::kFp16) &&
           cubist_aux::e4m3_from(value) == expected(Dtype::kE4m3);
  };
  Random random(3);
  for (int i = 0; i < 300000; ++i) {
    const auto any = std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
    const float near = random.normal() * std::exp2(static_cast<float>(random.between(-30, 18)));
    INFO(any << " " << near);
    REQUIRE(agrees(any));
    REQUIRE(agrees(near));
  }
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const float expected = decode_number(Dtype::kFp16, static_cast<std::uint16_t>(bits));
    const float got = cubist_aux::float_from_fp16(bits);
    REQUIRE((std::isnan(expected) ? std::isnan(got) : got == expected));
    // Every fp16 number, and the middle between it and the next, exercises each tie.
    REQUIRE(agrees(expected));
    REQUIRE(agrees(expected * 1.00048828125F));
  }
}

TEST_CASE("the fuse kernel and the host fuse to the same bits") {
  Random random(5);
  const auto scale = [&] {
    return random.normal() * std::exp2(static_cast<float>(random.between(-20, 20)));
  };
  for (int i = 0; i < 20000; ++i) {
    const float s[5] = {scale(), scale(), scale(), scale(), scale()};
    float bmm1 = 0.0F;
    float bmm2 = 0.0F;
    CubistFuseScalesParams params = {};
    // Each scale by value, or by address with a value beside it that must not be read.
    const std::uint64_t by_address = random.bits();
    const auto pointer = [&](int which) {
      return (by_address >> which & 1U) != 0 ? &s[which] : nullptr;
    };
    const auto value = [&](int which) { return pointer(which) != nullptr ? 1e9F : s[which]; };
    params.q = pointer(0);
    params.k = pointer(1);
    params.sm = pointer(2);
    params.v = pointer(3);
    params.o = pointer(4);
    params.q_value = value(0);
    params.k_value = value(1);
    params.sm_value = value(2);
    params.v_value = value(3);
    params.o_value = value(4);
    params.bmm1_scale_log2 = &bmm1;
    params.bmm2_scale = &bmm2;
    cubist_aux::fuse_scales(params);
    const launcher::FusedScales host = launcher::fuse_scales(s[0], s[1], s[2], s[3], s[4]);
    REQUIRE(std::bit_cast<std::uint32_t>(bmm1) == std::bit_cast<std::uint32_t>(host.bmm1_log2));
    REQUIRE(std::bit_cast<std::uint32_t>(bmm2) == std::bit_cast<std::uint32_t>(host.bmm2));
  }
}
