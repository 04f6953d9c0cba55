#pragma once

#include "launcher/call_args.h"
#include "model/attention_problem.h"
#include "model/derived_problem.h"
#include "model/launch_plan.h"

namespace cubist::test {

/// A decode call in which everything is right: 64 query heads on 8 KV heads, head_dim 64, bf16,
/// page 32, split over 4 CTAs.
struct DecodeCall {
  DecodeCall() {
    problem.dtype_q = problem.dtype_k = problem.dtype_v = problem.dtype_o = Dtype::kBf16;
    problem.head_dim_qk = 64;
    problem.num_q_heads = 64;
    problem.num_kv_heads = 8;
    problem.batch = 2;
    problem.max_q_len = 4;
    problem.max_kv_len = 1000;
    problem.page_size = 32;
    problem = with_derived_fields(problem);

    record.name = "decode_one";
    record.traits.tile_q = 32;
    record.traits.head_dim_qk = record.traits.head_dim_vo = 64;
    plan.record = &record;
    plan.family = KernelFamily::kCubistDecode;
    plan.grid = {4, 8, 2};
    plan.num_ctas_q = 1;
    plan.num_ctas_kv = 4;
    plan.num_tokens_per_cta_q = 4;
    plan.num_heads_per_cta = 8;

    args.q = 0x10000;
    args.k = 0x20000;
    args.v = 0x30000;
    args.o = 0x40000;
    args.block_table = 0x50004;
    args.seq_lens_kv = 0x60004;
    args.workspace = 0x70000;
    args.workspace_size = 1 << 22;
  }

  AttentionProblem problem;
  KernelRecord record;
  LaunchPlan plan;
  launcher::CallArgs args;
};

}  // namespace cubist::test
