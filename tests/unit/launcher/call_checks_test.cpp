#include "launcher/call_checks.h"

#include <cstring>
#include <functional>
#include <limits>

#include "decode_call.h"
#include "launcher/decode_args.h"
#include "support/catch.h"

using namespace cubist;
using Catch::Matchers::Contains;
using test::DecodeCall;

namespace {

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

struct BadCall {
  const char* what;
  std::function<void(DecodeCall&)> spoil;
  const char* phrase;
};

const std::vector<BadCall>& bad_calls() {
  static const std::vector<BadCall> calls = {
      {"q NULL", [](DecodeCall& c) { c.args.q = 0; }, "q is NULL"},
      {"k NULL", [](DecodeCall& c) { c.args.k = 0; }, "k is NULL"},
      {"v NULL", [](DecodeCall& c) { c.args.v = 0; }, "v is NULL"},
      {"o NULL", [](DecodeCall& c) { c.args.o = 0; }, "o is NULL"},
      {"block_table NULL", [](DecodeCall& c) { c.args.block_table = 0; }, "block_table is NULL"},
      {"seq_lens_kv NULL", [](DecodeCall& c) { c.args.seq_lens_kv = 0; }, "seq_lens_kv is NULL"},
      {"q misaligned", [](DecodeCall& c) { c.args.q += 8; },
       "q is 0x10008; it must be aligned to 16"},
      {"k misaligned", [](DecodeCall& c) { c.args.k += 2; }, "k is 0x20002"},
      {"v misaligned", [](DecodeCall& c) { c.args.v += 4; }, "v is 0x30004"},
      {"o misaligned", [](DecodeCall& c) { c.args.o += 1; }, "o is 0x40001"},
      {"block_table misaligned", [](DecodeCall& c) { c.args.block_table += 2; },
       "block_table is 0x50006; it must be aligned to 4"},
      {"seq_lens_kv misaligned", [](DecodeCall& c) { c.args.seq_lens_kv += 1; }, "seq_lens_kv is"},
      {"workspace NULL", [](DecodeCall& c) { c.args.workspace = 0; }, "the workspace (NULL)"},
      {"workspace small", [](DecodeCall& c) { c.args.workspace_size = 100; },
       "the workspace (given) has 100 bytes, this plan needs"},
      {"workspace misaligned", [](DecodeCall& c) { c.args.workspace += 16; },
       "workspace is 0x70010; it must be aligned to 256"},
      {"sinks missing", [](DecodeCall& c) { c.problem.sinks = true; },
       "sinks is NULL, but the problem says sinks = true"},
      {"sinks unasked", [](DecodeCall& c) { c.args.sinks = 0x100; }, "says sinks = false"},
      {"lse missing", [](DecodeCall& c) { c.problem.lse = true; }, "lse is NULL"},
      {"lse unasked", [](DecodeCall& c) { c.args.lse = 0x100; }, "says lse = false"},
      {"lse misaligned",
       [](DecodeCall& c) {
         c.problem.lse = true;
         c.args.lse = 0x101;
       },
       "lse is 0x101"},
      {"cum_seq_lens_q missing", [](DecodeCall& c) { c.problem.varlen_q = true; },
       "cum_seq_lens_q is NULL, but the problem says varlen_q = true"},
      {"cum_seq_lens_q unasked", [](DecodeCall& c) { c.args.cum_seq_lens_q = 0x100; },
       "says varlen_q = false"},
      {"bmm1 misaligned", [](DecodeCall& c) { c.args.bmm1_scale_log2 = 0x102; },
       "bmm1_scale_log2 is 0x102"},
      {"bmm2 misaligned", [](DecodeCall& c) { c.args.bmm2_scale = 0x103; }, "bmm2_scale is 0x103"},
      {"q stride odd", [](DecodeCall& c) { c.problem.q_stride_heads = 65; },
       "q_stride_heads is 65 elements of bf16"},
      {"q stride huge", [](DecodeCall& c) { c.problem.q_stride_tokens = kHuge / 16 * 8; },
       "q: 8 entries"},
      {"kv stride negative", [](DecodeCall& c) { c.problem.kv_stride_tokens = -8; },
       "kv_stride_tokens is -8"},
      {"kv page stride huge", [](DecodeCall& c) { c.problem.kv_stride_batch = kHuge / 16 * 8; },
       "k and v: 64 entries"},
      {"kv bytes huge",
       [](DecodeCall& c) {
         c.problem.kv_stride_batch = std::int64_t{1} << 57;
         c.problem.num_pages = 33;
       },
       "beyond 63 bits of bytes"},
      {"o stride odd", [](DecodeCall& c) { c.args.o_stride_tokens = 4097; },
       "o_stride_tokens is 4097"},
      {"o stride negative", [](DecodeCall& c) { c.args.o_stride_heads = -8; },
       "o_stride_heads is -8"},
      {"block scales of bf16", [](DecodeCall& c) { c.args.o_sf = 0x1000; },
       "o_sf is given, but dtype_o is bf16"},
      {"global scale of bf16", [](DecodeCall& c) { c.args.o_sf_scale = 2.0F; },
       "o_sf_scale is given, but dtype_o is bf16"},
      {"first scale row of bf16", [](DecodeCall& c) { c.args.o_sf_start_index = 2; },
       "o_sf_start_index is given, but dtype_o is bf16"},
      {"nvfp4 without block scales",
       [](DecodeCall& c) {
         c.problem.dtype_o = Dtype::kE2m1;
         c.problem.o_sf_scale = 1.0F;
       },
       "o_sf is 0x0; an nvfp4 output needs the address of 128 x 256 block scales"},
      {"nvfp4 without a global scale",
       [](DecodeCall& c) {
         c.problem.dtype_o = Dtype::kE2m1;
         c.args.o_sf = 0x1000;
       },
       "o_sf_scale is -1"},
      {"nvfp4 stride of 16 elements",
       [](DecodeCall& c) {
         c.problem.dtype_o = Dtype::kE2m1;
         c.problem.o_sf_scale = 1.0F;
         c.args.o_sf = 0x1000;
         c.args.o_stride_heads = 80;
       },
       "o_stride_heads is 80 elements of e2m1"},
      {"page no power of two", [](DecodeCall& c) { c.problem.page_size = 48; },
       "page_size is 48; it must be a power of two"},
      {"page 0", [](DecodeCall& c) { c.problem.page_size = 0; }, "page_size is 0"},
      {"page table short", [](DecodeCall& c) { c.problem.max_pages_per_seq = 31; },
       "max_kv_len is 1000, but a block_table row of 31 pages with 32 tokens holds 992"},
      {"head sizes differ", [](DecodeCall& c) { c.problem.head_dim_vo = 128; },
       "head_dim_qk is 64 and head_dim_vo is 128"},
      {"one copy, two addresses", [](DecodeCall& c) { c.problem.is_mla = true; },
       "v is 0x30000 and k is 0x20000"},
      {"lse with gaps",
       [](DecodeCall& c) {
         c.problem.lse = true;
         c.args.lse = 0x100;
         c.problem.lse_stride_tokens = 128;
       },
       "lse_stride_tokens is 128"},
      {"two tables", [](DecodeCall& c) { c.problem.uses_shared_paged_kv_idx = false; },
       "uses_shared_paged_kv_idx is false"},
      {"no tokens", [](DecodeCall& c) { c.problem.sum_seq_q = 0; }, "sum_seq_q is 0"},
      {"k_scale for bf16", [](DecodeCall& c) { c.args.scales.k_scale = 2; }, "k_scale is 2"},
  };
  return calls;
}

}  // namespace

TEST_CASE("a call in which everything is right passes") {
  const DecodeCall call;
  CHECK(launcher::check_decode_call(call.problem, call.args).has_value());
}

TEST_CASE("every field that is wrong is named with its value and the rule, and nothing is filled") {
  for (const BadCall& bad : bad_calls()) {
    DYNAMIC_SECTION(bad.what) {
      DecodeCall call;
      bad.spoil(call);
      CubistDecodeParams params;
      std::memset(&params, 0x5a, sizeof(params));
      const CubistDecodeParams before = params;
      const Status status =
          launcher::fill_decode_params(call.problem, call.plan, call.args, params);
      REQUIRE_FALSE(status.has_value());
      CHECK(status.error().code() == StatusCode::kInvalidArgument);
      CHECK_THAT(status.error().message(), Contains(bad.phrase));
      CHECK(std::memcmp(&params, &before, sizeof(params)) == 0);
    }
  }
}
