#include "launcher/decode_args.h"

#include "decode_call.h"
#include "launcher/decode_workspace.h"
#include "launcher/scales.h"
#include "support/catch.h"

using namespace cubist;
using launcher::fill_decode_params;
using test::DecodeCall;

namespace {

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

CubistDecodeParams filled(const DecodeCall& call) {
  CubistDecodeParams params{};
  const Status status = fill_decode_params(call.problem, call.plan, call.args, params);
  INFO((status ? "" : status.error().message()));
  REQUIRE(status.has_value());
  return params;
}

}  // namespace

TEST_CASE("the parameter block holds the call's addresses, strides and shape") {
  const DecodeCall call;
  const CubistDecodeParams params = filled(call);
  CHECK(address(params.q) == 0x10000);
  CHECK(address(params.k) == 0x20000);
  CHECK(address(params.v) == 0x30000);
  CHECK(address(params.o) == 0x40000);
  CHECK(address(params.block_table) == 0x50004);
  CHECK(address(params.seq_lens_kv) == 0x60004);
  CHECK(params.sinks == nullptr);
  CHECK(params.lse == nullptr);
  CHECK(params.cum_seq_lens_q == nullptr);
  CHECK(params.q_stride_tokens == 64 * 64);
  CHECK(params.q_stride_heads == 64);
  CHECK(params.k_stride_pages == 8 * 32 * 64);
  CHECK(params.k_stride_heads == 32 * 64);
  CHECK(params.k_stride_tokens == 64);
  CHECK(params.v_stride_pages == params.k_stride_pages);
  CHECK(params.o_stride_tokens == 64 * 64);
  CHECK(params.o_stride_heads == 64);
  CHECK(params.batch == 2);
  CHECK(params.max_q_len == 4);
  CHECK(params.num_q_heads == 64);
  CHECK(params.num_kv_heads == 8);
  CHECK(params.num_heads_per_kv == 8);
  CHECK(params.page_size_log2 == 5);
  CHECK(params.max_pages_per_seq == 32);
  CHECK(params.window_left == -1);
  CHECK(params.num_ctas_q == 1);
  CHECK(params.num_ctas_kv == 4);
  CHECK(params.num_tokens_per_cta_q == 4);
  CHECK(params.num_heads_per_cta == 8);
  CHECK(params.scale_softmax_log2 == launcher::scale_log2(1.0 / 8.0));
  CHECK(params.output_scale == 1.0F);
}

TEST_CASE("the workspace's pieces are pointed at, and at nothing where there is no split") {
  DecodeCall call;
  const auto workspace = launcher::decode_workspace(call.plan).value();
  CubistDecodeParams params = filled(call);
  CHECK(address(params.counters) == 0x70000);
  CHECK(address(params.partial_stats) == 0x70000 + workspace.partial_stats_offset);
  CHECK(address(params.partial_o) == 0x70000 + workspace.partial_o_offset);
  call.plan.num_ctas_kv = 1;
  call.args.workspace = 0;
  params = filled(call);
  CHECK(params.counters == nullptr);
  CHECK(params.partial_stats == nullptr);
  CHECK(params.partial_o == nullptr);
}

TEST_CASE("a workspace of exactly the size is taken, one byte less is not") {
  DecodeCall call;
  call.args.workspace_size = launcher::decode_workspace(call.plan)->size;
  CHECK(filled(call).counters != nullptr);
  --call.args.workspace_size;
  CubistDecodeParams params{};
  CHECK_FALSE(fill_decode_params(call.problem, call.plan, call.args, params).has_value());
}

TEST_CASE("NHD, combined KV and an output with gaps have their own strides") {
  DecodeCall call;
  call.problem.kv_layout = KvLayout::kNhd;
  call.problem.kv_combined = true;
  call.problem.kv_stride_batch = call.problem.kv_stride_heads = call.problem.kv_stride_tokens = -1;
  call.problem = with_derived_fields(call.problem);
  call.args.o_stride_tokens = 8192;
  call.args.o_stride_heads = 128;
  const CubistDecodeParams params = filled(call);
  CHECK(params.k_stride_heads == 64);
  CHECK(params.k_stride_tokens == 8 * 64);
  CHECK(params.k_stride_pages == 2 * 8 * 32 * 64);
  CHECK(params.o_stride_tokens == 8192);
  CHECK(params.o_stride_heads == 128);
}

TEST_CASE("optional tensors and device scalars are handed on") {
  DecodeCall call;
  call.problem.sinks = call.problem.lse = call.problem.varlen_q = true;
  call.args.sinks = 0x81004;
  call.args.lse = 0x82004;
  call.args.cum_seq_lens_q = 0x83004;
  call.args.bmm1_scale_log2 = 0x84004;
  call.args.bmm2_scale = 0x85004;
  const CubistDecodeParams params = filled(call);
  CHECK(address(params.sinks) == 0x81004);
  CHECK(address(params.lse) == 0x82004);
  CHECK(address(params.cum_seq_lens_q) == 0x83004);
  CHECK(address(params.bmm1_scale_log2) == 0x84004);
  CHECK(address(params.bmm2_scale) == 0x85004);
}

TEST_CASE("static kernels are told the output's type, and the least keys of a CTA") {
  DecodeCall call;
  CHECK(filled(call).fixed.dtype_o == kCubistDecodeOutputBf16);
  CHECK(filled(call).fixed.min_tiles_per_cta == 4);
  call.problem.batch_invariant = true;
  CHECK(filled(call).fixed.min_tiles_per_cta == 16);
  call.problem.dtype_o = Dtype::kFp16;
  CHECK(filled(call).fixed.dtype_o == kCubistDecodeOutputFp16);
  call.problem.dtype_o = Dtype::kE4m3;
  CHECK(filled(call).fixed.dtype_o == kCubistDecodeOutputE4m3);
  CHECK(filled(call).fixed.o_sf == nullptr);
  call.record.traits.scheduler = TileScheduler::kPersistent;  // a tensor map lies there
  CHECK(filled(call).fixed.min_tiles_per_cta == 0);
}

TEST_CASE("an nvfp4 output comes with its scales, of the call or else of the problem") {
  DecodeCall call;
  call.problem.dtype_o = Dtype::kE2m1;
  call.problem.o_sf_scale = 3.0F;
  call.problem.o_sf_start_index = 5;
  call.args.o_sf = 0x90010;
  CubistStaticDecodeParams fixed = filled(call).fixed;
  CHECK(fixed.dtype_o == kCubistDecodeOutputNvfp4);
  CHECK(address(fixed.o_sf) == 0x90010);
  CHECK(fixed.o_sf_scale == 3.0F);
  CHECK(fixed.o_sf_start_index == 5);
  call.args.o_sf_scale = 2.0F;
  call.args.o_sf_start_index = 7;
  fixed = filled(call).fixed;
  CHECK(fixed.o_sf_scale == 2.0F);
  CHECK(fixed.o_sf_start_index == 7);
}
