#include "launcher/decode_args.h"

#include <bit>

#include "launcher/call_checks.h"
#include "launcher/decode_workspace.h"
#include "launcher/device_pointer.h"
#include "launcher/nvfp4_output.h"
#include "launcher/scales.h"

namespace cubist::launcher {
namespace {

Status check_workspace(const DecodeWorkspace& needed, const CallArgs& args) {
  if (needed.size == 0) return {};
  if (args.workspace == 0 || args.workspace_size < needed.size) {
    return fail(StatusCode::kInvalidArgument, "the workspace ({}) has {} bytes, this plan needs {}",
                args.workspace == 0 ? "NULL" : "given", args.workspace_size, needed.size);
  }
  if (args.workspace % kWorkspaceAlignment == 0) return {};
  return fail(StatusCode::kInvalidArgument, "workspace is {:#x}; it must be aligned to {} bytes",
              args.workspace, kWorkspaceAlignment);
}

/// What the kernel does not do, and its dense LSE layout.
Status check_served(const AttentionProblem& p) {
  if (p.head_dim_qk != p.head_dim_vo && !p.is_mla) {
    return fail(
        StatusCode::kInvalidArgument,
        "head_dim_qk is {} and head_dim_vo is {}; cubist_decode kernels need them equal, or "
        "is_mla true",
        p.head_dim_qk, p.head_dim_vo);
  }
  if (p.lse && (p.lse_stride_tokens != p.num_q_heads || p.lse_stride_heads != 1)) {
    return fail(StatusCode::kInvalidArgument,
                "lse_stride_tokens is {} and lse_stride_heads is {}; cubist_decode kernels write a "
                "dense lse, {} and 1",
                p.lse_stride_tokens, p.lse_stride_heads, p.num_q_heads);
  }
  if (!p.uses_shared_paged_kv_idx) {
    return fail(StatusCode::kInvalidArgument,
                "uses_shared_paged_kv_idx is false; cubist_decode kernels read one block_table for "
                "K and V");
  }
  return {};
}

void fill_pointers(const CallArgs& args, const DecodeWorkspace& workspace,
                   CubistDecodeParams& params) {
  params.q = device_pointer<const void>(args.q);
  params.k = device_pointer<const void>(args.k);
  params.v = device_pointer<const void>(value_address(args));
  params.o = device_pointer<void>(args.o);
  params.sinks = device_pointer<const float>(args.sinks);
  params.lse = device_pointer<float>(args.lse);
  params.block_table = device_pointer<const std::int32_t>(args.block_table);
  params.seq_lens_kv = device_pointer<const std::int32_t>(args.seq_lens_kv);
  params.cum_seq_lens_q = device_pointer<const std::int32_t>(args.cum_seq_lens_q);
  params.bmm1_scale_log2 = device_pointer<const float>(args.bmm1_scale_log2);
  params.bmm2_scale = device_pointer<const float>(args.bmm2_scale);
  if (workspace.size == 0) return;
  params.counters = device_pointer<std::int32_t>(args.workspace);
  params.partial_stats = device_pointer<float>(args.workspace + workspace.partial_stats_offset);
  params.partial_o = device_pointer<float>(args.workspace + workspace.partial_o_offset);
}

void fill_strides(const AttentionProblem& p, const CallArgs& args, CubistDecodeParams& params) {
  params.q_stride_tokens = p.q_stride_tokens;
  params.q_stride_heads = p.q_stride_heads;
  params.k_stride_pages = p.kv_stride_batch;
  params.k_stride_heads = p.kv_stride_heads;
  params.k_stride_tokens = p.kv_stride_tokens;
  params.v_stride_pages = p.kv_stride_batch;
  params.v_stride_heads = p.kv_stride_heads;
  params.v_stride_tokens = p.kv_stride_tokens;
  const OutputStrides o = output_strides(p, args);
  params.o_stride_heads = o.heads;
  params.o_stride_tokens = o.tokens;
}

/// What static kernels alone read.
void fill_static(const AttentionProblem& p, const CallArgs& args, CubistStaticDecodeParams& fixed) {
  fixed.min_tiles_per_cta =
      p.batch_invariant ? kCubistDecodeInvariantTilesPerCta : kCubistDecodeMinTilesPerCta;
  fixed.dtype_o = p.dtype_o == Dtype::kBf16   ? kCubistDecodeOutputBf16
                  : p.dtype_o == Dtype::kFp16 ? kCubistDecodeOutputFp16
                  : p.dtype_o == Dtype::kE4m3 ? kCubistDecodeOutputE4m3
                                              : kCubistDecodeOutputNvfp4;
  if (p.dtype_o != Dtype::kE2m1) return;
  fixed.o_sf = device_pointer<void>(args.o_sf);
  fixed.o_sf_scale = p.o_sf_scale;
  fixed.o_sf_start_index = p.o_sf_start_index;
}

}  // namespace

Status fill_decode_params(const AttentionProblem& problem, const LaunchPlan& plan,
                          const CallArgs& args, CubistDecodeParams& params) {
  AttentionProblem p = problem;
  p.o_sf_scale = args.o_sf_scale.value_or(p.o_sf_scale);
  p.o_sf_start_index = args.o_sf_start_index.value_or(p.o_sf_start_index);
  CUBIST_RETURN_IF_ERROR(check_served(p));
  CUBIST_RETURN_IF_ERROR(check_decode_call(p, args));
  CUBIST_ASSIGN_OR_RETURN(const DecodeWorkspace workspace, decode_workspace(plan));
  CUBIST_RETURN_IF_ERROR(check_workspace(workspace, args));
  CUBIST_ASSIGN_OR_RETURN(const FusedScales scales, fuse_scales(p, args));

  params = {};
  fill_pointers(args, workspace, params);
  fill_strides(p, args, params);
  params.scale_softmax_log2 = scales.bmm1_log2;
  params.output_scale = scales.bmm2;
  params.batch = p.batch;
  params.max_q_len = p.max_q_len;
  params.num_q_heads = p.num_q_heads;
  params.num_kv_heads = p.num_kv_heads;
  params.num_heads_per_kv = p.num_q_heads / p.num_kv_heads;
  params.page_size_log2 = std::countr_zero(static_cast<std::uint32_t>(p.page_size));
  params.max_pages_per_seq = p.max_pages_per_seq;
  params.window_left = p.window_left;
  params.num_ctas_q = plan.num_ctas_q;
  params.num_ctas_kv = plan.num_ctas_kv;
  params.num_tokens_per_cta_q = plan.num_tokens_per_cta_q;
  params.num_heads_per_cta = plan.num_heads_per_cta;
  params.prefetch_kv = plan.pdl ? 1 : 0;
  if (plan.record->traits.scheduler == TileScheduler::kStatic) fill_static(p, args, params.fixed);
  return {};
}

}  // namespace cubist::launcher
