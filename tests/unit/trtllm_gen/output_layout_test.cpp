#include "launcher/output_layout.h"

#include "launcher/call_checks.h"
#include "model/derived_problem.h"
#include "support/catch.h"

namespace {

using namespace cubist;
using launcher::check_output_layout;
using launcher::TensorLayout;

AttentionProblem problem(std::int32_t max_q_len) {
  AttentionProblem p;
  p.num_q_heads = 64;
  p.head_dim_vo = 128;
  p.batch = 8;
  p.max_q_len = max_q_len;
  return with_derived_fields(p);
}

/// [8 * q, 64, 128] and [8, q, 64, 128], dense.
TensorLayout by_token(std::int64_t q) {
  return {Dtype::kBf16, 3, {8 * q, 64, 128}, {8192, 128, 1}};
}
TensorLayout by_sequence(std::int64_t q) {
  return {Dtype::kBf16, 4, {8, q, 64, 128}, {8192 * q, 8192, 128, 1}};
}

}  // namespace

TEST_CASE(
    "what is to be allocated is what a given output must be, for one query token and for more") {
  for (const std::int32_t q : {1, 4}) {
    const AttentionProblem p = problem(q);
    CHECK(launcher::output_layout(p) == by_token(q));
    CHECK(check_output_layout(p, launcher::output_layout(p), true));
    CHECK(check_output_layout(p, by_token(q), true));
    CHECK(check_output_layout(p, by_sequence(q), true));
  }
}

TEST_CASE("an output's shape follows V's head size, which MLA has another of") {
  AttentionProblem p = problem(2);
  p.head_dim_qk = 576;
  p.head_dim_vo = 512;
  CHECK(launcher::output_layout(p).shape == std::array<std::int64_t, 4>{16, 64, 512, 0});
  TensorLayout of_query = launcher::output_layout(p);
  of_query.shape[2] = 576;
  of_query.strides = {64 * 576, 576, 1};
  CHECK_FALSE(check_output_layout(p, of_query, true));
}

TEST_CASE("a wrong output is refused with what it is and what is expected") {
  struct Row {
    std::int32_t max_q_len;
    TensorLayout given;
    const char* rule;
  };
  const auto changed = [](TensorLayout layout, void (*change)(TensorLayout&)) {
    change(layout);
    return layout;
  };
  const Row rows[] = {
      {1, changed(by_token(1), [](TensorLayout& l) { l.dtype = Dtype::kFp16; }), "type differs"},
      {1, changed(by_token(1), [](TensorLayout& l) { l.shape[0] = 7; }), "shape differs"},
      {4, by_token(1), "shape differs"},
      {1, by_sequence(4), "shape differs"},
      {4, changed(by_sequence(4), [](TensorLayout& l) { std::swap(l.shape[0], l.shape[1]); }),
       "shape differs"},
      {4, changed(by_token(4), [](TensorLayout& l) { l.shape[2] = 64; }), "shape differs"},
      {1, changed(by_token(1), [](TensorLayout& l) { l.rank = 2; }), "shape differs"},
      {1, changed(by_token(1), [](TensorLayout& l) { l.strides[2] = 2; }), "last stride must be 1"},
      {4, changed(by_token(4), [](TensorLayout& l) { l.strides[0] = 16384; }),
       "dense outputs only"},
      {4, changed(by_token(4), [](TensorLayout& l) { l.strides[1] = 256; }), "dense outputs only"},
  };
  for (const Row& row : rows) {
    INFO(launcher::to_string(row.given));
    const AttentionProblem p = problem(row.max_q_len);
    const Status status = check_output_layout(p, row.given, true);
    REQUIRE_FALSE(status);
    CHECK(status.error().code() == StatusCode::kInvalidArgument);
    const std::string& text = status.error().message();
    CHECK_THAT(text, Catch::Contains("o is " + launcher::to_string(row.given)));
    CHECK_THAT(text, Catch::Contains("expected bf16 ["));
    CHECK_THAT(text, Catch::Contains(row.rule));
  }
  for (const std::int32_t rank : {0, 5}) {
    TensorLayout layout = by_token(1);
    layout.rank = rank;
    CHECK_FALSE(check_output_layout(problem(1), layout, true));
  }
}

TEST_CASE("sequences of different lengths have no four-dimensional output") {
  AttentionProblem p = problem(4);
  p.varlen_q = true;
  CHECK_FALSE(check_output_layout(p, by_sequence(4), true));
  p.sum_seq_q = 20;
  CHECK(check_output_layout(p, launcher::output_layout(p), true));
}

TEST_CASE("a kernel that writes strided outputs takes them, with their strides") {
  const AttentionProblem p = problem(4);
  TensorLayout wide = by_sequence(4);
  wide.strides = {4 * 16384, 16384, 256, 1};
  CHECK(check_output_layout(p, wide, false));
  CHECK_FALSE(check_output_layout(p, wide, true));
  launcher::CallArgs args;
  args.o_layout = wide;
  CHECK(launcher::check_output(p, args, false));
  CHECK(launcher::output_strides(p, args).tokens == 16384);
  CHECK(launcher::output_strides(p, args).heads == 256);
  wide.strides[0] = 5 * 16384;  // a gap between the sequences
  CHECK_THAT(check_output_layout(p, wide, false).error().message(),
             Catch::Contains("evenly spaced"));
}

TEST_CASE("strides that are given alone obey the same rule") {
  const AttentionProblem p = problem(4);
  launcher::CallArgs args;
  CHECK(launcher::check_output(p, args, true));
  args.o_stride_tokens = 16384;
  CHECK(launcher::check_output(p, args, false));
  CHECK_THAT(launcher::check_output(p, args, true).error().message(),
             Catch::Contains("strides [16384, 128, 1]") && Catch::Contains("[8192, 128, 1]"));
}
