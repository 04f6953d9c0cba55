#include "reference/decode_reference.h"

#include <cmath>
#include <limits>

#include "gpu/decode_case.h"
#include "gpu/decode_check.h"
#include "reference/number_formats.h"
#include "support/catch.h"

namespace cubist::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// One sequence, one head of one element, a page a key: score = q * k, all by hand.
DecodeProblem tiny_problem(std::vector<float> q, std::vector<float> k, std::vector<float> v) {
  DecodeProblem problem;
  problem.head_dim = problem.head_dim_vo = 1;
  problem.num_q_heads = problem.num_kv_heads = 1;
  problem.max_pages_per_seq = static_cast<int>(k.size());
  problem.cum_seq_lens_q = {0, static_cast<std::int32_t>(q.size())};
  problem.seq_lens_kv = {static_cast<std::int32_t>(k.size())};
  for (std::size_t i = 0; i < k.size(); ++i) problem.block_table.push_back(static_cast<int>(i));
  problem.q = std::move(q);
  problem.k = std::move(k);
  problem.v = std::move(v);
  problem.q_stride_tokens = problem.q_stride_heads = 1;
  problem.kv_stride_pages = problem.kv_stride_heads = problem.kv_stride_tokens = 1;
  return problem;
}

TEST_CASE("equal scores average the values, and LSE is log2 of the number of keys") {
  const DecodeAnswer answer = decode_reference(tiny_problem({0}, {1, 2, 3, 4}, {1, -2, 3, 6}));
  CHECK(answer.o[0] == Approx(2.0));
  CHECK(answer.magnitude[0] == Approx(3.0));
  CHECK(answer.lse[0] == Approx(2.0));
}

TEST_CASE("scores are powers of two after the scale, the output is scaled at the end") {
  DecodeProblem problem = tiny_problem({2}, {0, 1}, {10, 40});
  problem.scale_log2 = 0.5;  // scores 0 and 1: weights 1 and 2
  problem.output_scale = 3.0;
  const DecodeAnswer answer = decode_reference(problem);
  CHECK(answer.o[0] == Approx(3.0 * (10.0 + 2.0 * 40.0) / 3.0));
  CHECK(answer.lse[0] == Approx(std::log2(3.0)));
}

TEST_CASE("a new token sees the keys before it and itself, no later one") {
  const DecodeAnswer answer = decode_reference(tiny_problem({0, 0}, {0, 0, 0}, {1, 3, kNan}));
  CHECK(answer.o[0] == Approx(2.0));
  CHECK(std::isnan(answer.o[1]));
}

TEST_CASE("tokens before the first key see nothing: zero and -inf") {
  const DecodeAnswer answer = decode_reference(tiny_problem({0, 0, 0}, {5}, {7}));
  CHECK(answer.o[0] == 0.0);
  CHECK(answer.lse[1] == -kInfinity);
  CHECK(answer.o[2] == Approx(7.0));
}

TEST_CASE("the window counts tokens left of the query's own") {
  DecodeProblem problem = tiny_problem({0, 0}, {0, 0, 0, 0}, {kNan, kNan, 4, 8});
  problem.window_left = 0;
  CHECK(decode_reference(problem).o[1] == Approx(8.0));
  problem.window_left = 1;
  const DecodeAnswer answer = decode_reference(problem);
  CHECK(std::isnan(answer.o[0]));
  CHECK(answer.o[1] == Approx(6.0));
}

TEST_CASE("a sink takes weight and gives nothing; without keys it is the LSE") {
  DecodeProblem problem = tiny_problem({0}, {0, 0}, {3, 3});
  problem.sinks = {static_cast<float>(std::log(2.0))};  // weight 2 beside 1 and 1
  DecodeAnswer answer = decode_reference(problem);
  CHECK(answer.o[0] == Approx(1.5));
  CHECK(answer.lse[0] == Approx(2.0));
  problem.seq_lens_kv = {0};
  answer = decode_reference(problem);
  CHECK(answer.o[0] == 0.0);
  CHECK(answer.lse[0] == Approx(1.0));
}

TEST_CASE("pages are found through the block table, heads and tokens by their strides") {
  // Two query heads on one KV head of two elements, pages of two tokens, in reversed order.
  DecodeProblem problem;
  problem.head_dim = problem.head_dim_vo = 2;
  problem.num_q_heads = 2;
  problem.num_kv_heads = 1;
  problem.page_size = 2;
  problem.max_pages_per_seq = 2;
  problem.cum_seq_lens_q = {0, 1};
  problem.seq_lens_kv = {3};
  problem.block_table = {1, 0};
  problem.q = {0, 0, 1, 0};
  problem.q_stride_tokens = 4;
  problem.q_stride_heads = 2;
  problem.kv_stride_pages = 4;
  problem.kv_stride_heads = 4;
  problem.kv_stride_tokens = 2;
  problem.k = {1, 0, kNan, kNan, 0, 0, 0, 0};
  problem.v = {9, 90, kNan, kNan, 1, 10, 2, 20};
  const DecodeAnswer answer = decode_reference(problem);
  CHECK(answer.o[0] == Approx(4.0));
  CHECK(answer.o[1] == Approx(40.0));
  CHECK(answer.o[2] == Approx((1.0 + 2.0 + 2.0 * 9.0) / 4.0));
  CHECK(answer.o[3] == Approx((10.0 + 20.0 + 2.0 * 90.0) / 4.0));
}

TEST_CASE("numbers of every type survive a round trip, and rounding goes to the nearest even") {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kE4m3, Dtype::kE2m1}) {
    for (int bits = 0; bits < 1 << dtype_bits(dtype); ++bits) {
      const float number = decode_number(dtype, static_cast<std::uint16_t>(bits));
      if (std::isnan(number)) continue;
      REQUIRE(encode_number(dtype, number) == bits);
    }
  }
  CHECK(decode_number(Dtype::kE4m3, 0x7e) == 448.0F);
  CHECK(decode_number(Dtype::kE4m3, 0x01) == 0x1p-9F);
  CHECK(std::isnan(decode_number(Dtype::kE4m3, 0xff)));
  CHECK(round_to(Dtype::kE4m3, 1000.0F) == 448.0F);
  const float e2m1[8] = {0.0F, 0.5F, 1.0F, 1.5F, 2.0F, 3.0F, 4.0F, 6.0F};
  for (std::uint16_t bits = 0; bits < 8; ++bits) {
    CHECK(decode_number(Dtype::kE2m1, bits) == e2m1[bits]);
  }
  CHECK(round_to(Dtype::kE2m1, 2.5F) == 2.0F);
  CHECK(round_to(Dtype::kE2m1, 0.75F) == 1.0F);
  CHECK(round_to(Dtype::kE2m1, -100.0F) == -6.0F);
  CHECK(round_to(Dtype::kBf16, 1.0F + 0x1p-8F) == 1.0F);
  CHECK(round_to(Dtype::kBf16, 1.0F + 0x3p-8F) == 1.0F + 0x1p-6F);
  CHECK(round_to(Dtype::kFp16, 1.0F + 0x1p-11F) == 1.0F);
  CHECK(std::isnan(round_to(Dtype::kFp16, kNan)));
}

DecodeOutput exact_output(const DecodeVariant& variant, const DecodeCase& made,
                          const DecodeAnswer& answer) {
  DecodeOutput output;
  output.o.assign(static_cast<std::size_t>(made.problem.sum_seq_q() * made.o_stride_tokens),
                  0xffff);
  const auto heads = static_cast<std::size_t>(made.problem.num_q_heads);
  const auto head_dim = static_cast<std::size_t>(made.problem.head_dim_vo);
  for (std::size_t i = 0; i < answer.o.size(); ++i) {
    const std::size_t row = i / head_dim;
    const std::size_t at = row / heads * static_cast<std::size_t>(made.o_stride_tokens) +
                           row % heads * static_cast<std::size_t>(made.o_stride_heads) +
                           i % head_dim;
    output.o[at] = encode_number(variant.dtype_q, static_cast<float>(answer.o[i]));
  }
  for (const double lse : answer.lse) output.lse.push_back(static_cast<float>(lse));
  return output;
}

TEST_CASE(
    "the check passes the rounded reference and finds one wrong element, LSE or stray write") {
  const DecodeVariant variant = {"k", Dtype::kBf16, Dtype::kE4m3, 64, 64, 16, 128};
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DecodeCase made = make_decode_case(variant, seed);
    const DecodeAnswer answer = decode_reference(made.problem);
    if (answer.o.empty() || answer.magnitude[0] == 0.0) continue;
    ++cases;
    const DecodeOutput good = exact_output(variant, made, answer);
    CHECK(check_output(variant, made, answer, good).failure.empty());
    DecodeOutput bad = good;
    bad.o[0] =
        encode_number(Dtype::kBf16, static_cast<float>(answer.o[0] + 0.02 * answer.magnitude[0] +
                                                       0.02 * std::fabs(answer.o[0])));
    CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
    bad = good;
    bad.o[0] = 0xffff;
    CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
    bad = good;
    bad.lse[0] += 0.01F;
    CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
    if (made.o_stride_heads == made.problem.head_dim) continue;
    bad = good;
    bad.o[64] = 0;
    CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
  }
  CHECK(cases > 8);
}

/// The reference in nvfp4, by the text of launcher/nvfp4_output.h.
DecodeOutput nvfp4_output(const DecodeCase& made, const DecodeAnswer& answer) {
  DecodeOutput output;
  output.o.assign(static_cast<std::size_t>(made.problem.sum_seq_q() * made.o_stride_tokens), 0xf);
  const auto layout = block_scales_of(made);
  output.o_sf.assign(static_cast<std::size_t>(layout.size_bytes()), 0xff);
  const auto heads = static_cast<std::size_t>(made.problem.num_q_heads);
  const auto head_dim = static_cast<std::size_t>(made.problem.head_dim_vo);
  for (std::size_t first = 0; first < answer.o.size(); first += 16) {
    double largest = 0.0;
    for (std::size_t i = first; i < first + 16; ++i) {
      largest = std::max(largest, std::fabs(answer.o[i]));
    }
    const auto global = static_cast<double>(made.o_sf_scale);
    const std::uint16_t scale =
        encode_number(Dtype::kE4m3, static_cast<float>(global * largest / 6.0));
    const auto unit = static_cast<double>(decode_number(Dtype::kE4m3, scale)) / global;
    const std::size_t row = first / head_dim;
    output.o_sf[static_cast<std::size_t>(layout.offset(
        static_cast<std::int64_t>(row / heads) + made.o_sf_start_index,
        static_cast<std::int64_t>((row % heads * head_dim + first % head_dim) / 16)))] =
        static_cast<std::uint8_t>(scale);
    for (std::size_t i = first; i < first + 16; ++i) {
      output.o[row / heads * static_cast<std::size_t>(made.o_stride_tokens) +
               row % heads * static_cast<std::size_t>(made.o_stride_heads) + i % head_dim] =
          encode_number(Dtype::kE2m1, unit == 0.0 ? 0.0F : static_cast<float>(answer.o[i] / unit));
    }
  }
  for (const double lse : answer.lse) output.lse.push_back(static_cast<float>(lse));
  return output;
}

TEST_CASE("the check of an nvfp4 output finds one wrong element, scale or stray write") {
  DecodeVariant variant = {"k", Dtype::kE4m3, Dtype::kE4m3, 64, 64, 16, 128};
  variant.dtype_o = Dtype::kE2m1;
  int cases = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const DecodeCase made = make_decode_case(variant, seed);
    const DecodeAnswer answer = decode_reference(made.problem);
    if (answer.o.empty()) continue;
    const DecodeOutput good = nvfp4_output(made, answer);
    CHECK(check_output(variant, made, answer, good).failure.empty());
    const auto layout = block_scales_of(made);
    const auto scale = static_cast<std::size_t>(layout.offset(made.o_sf_start_index, 0));
    if (good.o_sf[scale] < 0x20 || good.o_sf[scale] > 0x70) continue;  // of little use
    ++cases;
    DecodeOutput bad = good;
    bad.o[0] ^= 4U;
    CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
    bad = good;
    bad.o_sf[scale] += 4;
    CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
    bad = good;
    bad.o_sf[static_cast<std::size_t>(
        layout.offset(made.o_sf_start_index + made.problem.sum_seq_q(), 0))] = 1;
    if (made.o_sf_start_index + made.problem.sum_seq_q() < layout.rows) {
      CHECK_FALSE(check_output(variant, made, answer, bad).failure.empty());
    }
  }
  CHECK(cases > 5);
}

}  // namespace
}  // namespace cubist::test
