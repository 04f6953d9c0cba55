#include "launcher/trtllm_gen/call.h"

#include <string_view>

#include "launcher/call_checks.h"
#include "launcher/nvfp4_output.h"
#include "launcher/scales.h"
#include "launcher/trtllm_gen/workspace.h"

namespace cubist::trtllm_gen {
namespace {

using launcher::CallArgs;
using launcher::check_address;

constexpr std::uint64_t kTensorAlignment = 16;
constexpr std::uint64_t kWorkspaceAlignment = 16;

/// A thing is given exactly where the problem has it. `what`: how the problem says so.
Status check_given(std::string_view name, std::uint64_t address, bool wanted, std::string_view what,
                   std::uint64_t alignment = alignof(float)) {
  if (!wanted && address == 0) return {};
  if (wanted && address != 0) return check_address(name, address, alignment);
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be given exactly for {}", name,
              wanted ? "NULL" : "given", what);
}

Status check_tensors(const AttentionProblem& p, const CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(check_address("q", args.q, kTensorAlignment));
  CUBIST_RETURN_IF_ERROR(check_address("k", args.k, kTensorAlignment));
  if (p.is_mla) {
    if (args.v != 0 && args.v != args.k) {
      return fail(StatusCode::kInvalidArgument,
                  "v is {:#x} and k {:#x}; is_mla says that one cache holds both: leave v out",
                  args.v, args.k);
    }
  } else {
    CUBIST_RETURN_IF_ERROR(check_address("v", args.v, kTensorAlignment));
  }
  CUBIST_RETURN_IF_ERROR(check_address("o", args.o, kTensorAlignment));
  const bool fp4_kv = p.dtype_k == Dtype::kE2m1;
  CUBIST_RETURN_IF_ERROR(
      check_given("k_sf", args.k_sf, fp4_kv, "an e2m1 KV cache", kTensorAlignment));
  CUBIST_RETURN_IF_ERROR(
      check_given("v_sf", args.v_sf, fp4_kv, "an e2m1 KV cache", kTensorAlignment));
  return check_given("sliding_pool", args.sliding_pool, p.sparse_dynamic, "sparse_dynamic",
                     kTensorAlignment);
}

Status check_lengths(const AttentionProblem& p, const CallArgs& args) {
  const bool decode = p.phase == Phase::kDecode;
  CUBIST_RETURN_IF_ERROR(check_given("block_table", args.block_table, p.phase != Phase::kRagged,
                                     "decode and context calls"));
  CUBIST_RETURN_IF_ERROR(check_address("seq_lens_kv", args.seq_lens_kv, sizeof(std::int32_t)));
  CUBIST_RETURN_IF_ERROR(check_given("cum_seq_lens_q", args.cum_seq_lens_q, !decode || p.varlen_q,
                                     "context and ragged calls, and varlen_q"));
  CUBIST_RETURN_IF_ERROR(
      check_given("cum_seq_lens_kv", args.cum_seq_lens_kv, !decode, "context and ragged calls"));
  CUBIST_RETURN_IF_ERROR(
      check_given("topk_lens", args.topk_lens, p.sparse_dynamic, "sparse_dynamic"));
  CUBIST_RETURN_IF_ERROR(check_given("sinks", args.sinks, p.sinks, "sinks"));
  return check_given("lse", args.lse, p.lse, "lse");
}

/// A page table row must hold the longest sequence; a top-k call has indices instead.
Status check_pages(const AttentionProblem& p) {
  if (p.phase == Phase::kRagged || p.sparse_mla_topk > 0) return {};
  const std::int64_t tokens = std::int64_t{p.max_pages_per_seq} * p.page_size;
  if (p.max_kv_len <= tokens) return {};
  return fail(StatusCode::kInvalidArgument,
              "max_kv_len is {}, but a block_table row of {} pages with {} tokens holds {}",
              p.max_kv_len, p.max_pages_per_seq, p.page_size, tokens);
}

Status check_sage(const KernelTraits& traits, const CallArgs& args) {
  constexpr std::array<std::string_view, 4> kNames = {"sage_scales of q", "sage_scales of k",
                                                      "sage_scales of p", "sage_scales of v"};
  const std::array<std::uint8_t, 4> blocks = {traits.sage_block_q, traits.sage_block_k,
                                              traits.sage_block_p, traits.sage_block_v};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    CUBIST_RETURN_IF_ERROR(
        check_given(kNames[i], args.sage_scales[i], blocks[i] != 0, "a sage block that is not 0"));
  }
  return {};
}

Status check_output(const AttentionProblem& p, const CallArgs& args) {
  CUBIST_RETURN_IF_ERROR(launcher::check_output(p, args, true));
  return launcher::check_nvfp4_output(p, args.o_sf);
}

Status check_workspace_of(const AttentionProblem& p, const LaunchPlan& plan, std::int32_t num_sms,
                          const CallArgs& args) {
  const Workspace workspace = carve_workspace(p, plan, num_sms);
  if (workspace.required_bytes == 0) return {};
  CUBIST_RETURN_IF_ERROR(check_address("workspace", args.workspace, kWorkspaceAlignment));
  return check_workspace(workspace, args.workspace_size);
}

Addresses addresses_of(const AttentionProblem& p, const CallArgs& args) {
  Addresses a;
  a.q = args.q;
  a.k = args.k;
  a.v = p.is_mla ? args.k : args.v;
  a.o = args.o;
  a.o_sf = args.o_sf;
  a.k_sf = args.k_sf;
  a.v_sf = args.v_sf;
  a.sliding_pool = args.sliding_pool;
  a.workspace = args.workspace;
  a.block_table = args.block_table;
  a.seq_lens_kv = args.seq_lens_kv;
  a.cum_seq_lens_q = args.cum_seq_lens_q;
  a.cum_seq_lens_kv = args.cum_seq_lens_kv;
  a.sinks = args.sinks;
  a.lse = args.lse;
  a.topk_lens = args.topk_lens;
  a.bmm1_scale = args.bmm1_scale_log2;
  a.bmm2_scale = args.bmm2_scale;
  a.sage_scales = args.sage_scales;
  return a;
}

Status set_scales(const CallArgs& args, AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(check_given("bmm1_scale_log2", args.bmm1_scale_log2,
                                     args.bmm1_scale_log2 != 0, "a device scalar"));
  CUBIST_RETURN_IF_ERROR(
      check_given("bmm2_scale", args.bmm2_scale, args.bmm2_scale != 0, "a device scalar"));
  CUBIST_ASSIGN_OR_RETURN(const launcher::FusedScales scales, launcher::fuse_scales(p, args));
  p.bmm1_scale = {static_cast<double>(scales.bmm1), args.bmm1_scale_log2 != 0};
  p.bmm2_scale = {static_cast<double>(scales.bmm2), args.bmm2_scale != 0};
  return {};
}

}  // namespace

Result<Call> make_call(const AttentionProblem& problem, const LaunchPlan& plan,
                       std::int32_t num_sms, const CallArgs& args) {
  Result<Call> call(tl::in_place);
  call->problem = problem;
  AttentionProblem& p = call->problem;
  p.o_sf_scale = args.o_sf_scale.value_or(p.o_sf_scale);
  p.o_sf_start_index = args.o_sf_start_index.value_or(p.o_sf_start_index);
  CUBIST_RETURN_IF_ERROR(check_tensors(p, args));
  CUBIST_RETURN_IF_ERROR(check_lengths(p, args));
  CUBIST_RETURN_IF_ERROR(check_pages(p));
  CUBIST_RETURN_IF_ERROR(check_sage(plan.record->traits, args));
  CUBIST_RETURN_IF_ERROR(check_output(p, args));
  CUBIST_RETURN_IF_ERROR(check_workspace_of(p, plan, num_sms, args));
  CUBIST_RETURN_IF_ERROR(set_scales(args, p));
  call->addresses = addresses_of(p, args);
  return call;
}

}  // namespace cubist::trtllm_gen
