#include "codec/plan_json.h"

#include <array>

#include "codec/json_writer.h"

namespace cubist {
namespace {

constexpr std::uint64_t kCounterBytes = std::uint64_t{8192} * 256 * 4;

/// 100, 103, or 10100 for a family cubin: the published metadata's way of writing it.
std::uint32_t metadata_sm(SmArch arch) {
  return arch.kind == SmArch::Kind::kFamily ? 10000U + arch.sm : arch.sm;
}

/// The published kernels are templates over CUDA's names of the types.
std::string_view cuda_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp16:
      return "__half";
    case Dtype::kBf16:
      return "__nv_bfloat16";
    case Dtype::kE4m3:
      return "__nv_fp8_e4m3";
    default:
      return "float";
  }
}

bool is_old_layout(const LaunchPlan& plan) {
  return plan.param_layout == ParamLayout::kTrtllmGenFmha1152;
}

std::string reduction_template(const LaunchPlan& plan) {
  const KernelTraits& traits = plan.record->traits;
  const bool e4m3 = traits.dtype_q == Dtype::kE4m3;
  // Partial results are fp16 where an e4m3 MMA ends in e4m3 or fp16, else of the output's type.
  const Dtype partial = e4m3 && traits.dtype_o == Dtype::kE4m3 ? Dtype::kFp16 : traits.dtype_o;
  if (is_old_layout(plan)) {
    return fmt::format("fmhaReductionKernel<{}, {}, {}, {}, {}, {}>", traits.tile_q,
                       traits.head_dim_vo, plan.reduction.head_dim_per_cta, e4m3,
                       cuda_type(traits.dtype_o), cuda_type(partial));
  }
  return fmt::format("fmhaReductionKernel<{}, {}, {}, {}, {}>", traits.tile_q,
                     plan.reduction.head_dim_per_cta, e4m3, cuda_type(traits.dtype_o),
                     cuda_type(partial));
}

void append_launch(JsonWriter& json, const std::array<std::uint32_t, 3>& grid, std::uint32_t block,
                   bool pdl) {
  json.list("grid", grid);
  json.list("block", std::array<std::uint32_t, 3>{block, 1, 1});
  json.field("smem", 0).field("pdl", pdl ? 1 : 0);
}

void append_reduction(const LaunchPlan& plan, JsonWriter& json) {
  json.key("reduction_kernel");
  if (!plan.reduction.needed) {
    json.raw("null");
    return;
  }
  const KernelTraits& traits = plan.record->traits;
  const ReductionPlan& reduction = plan.reduction;
  const std::string name = reduction_template(plan);
  json.begin('{');
  json.field("template", name);
  json.field("kernel", "void tensorrt_llm::kernels::" + name);
  append_launch(json, reduction.grid, reduction.block, plan.pdl);
  json.key("scalars").begin('[');
  json.value(traits.sparse_type != SparseType::kNone ? 1 : 0);
  if (is_old_layout(plan)) {
    json.value(reduction.ctas_per_tile).value(reduction.num_head_ctas);
  } else {
    const bool dynamic = traits.sparse_type == SparseType::kDynamicTokens &&
                         traits.head_dim_qk == 512 && traits.head_dim_vo == 512;
    json.value(traits.groups_tokens_heads_q ? 1 : 0).value(dynamic ? 1 : 0);
    json.value(reduction.ctas_per_tile).value(reduction.num_head_ctas).value(traits.head_dim_vo);
  }
  json.value(reduction.num_head_dim_ctas).end(']').end('}');
}

void append_lse(const LaunchPlan& plan, const AttentionProblem& problem,
                const PlanAddresses& addresses, JsonWriter& json) {
  json.key("lse_kernel");
  if (!plan.lse.needed) {
    json.raw("null");
    return;
  }
  const std::int64_t tokens =
      problem.sum_seq_q != -1 ? problem.sum_seq_q : std::int64_t{problem.batch} * problem.max_q_len;
  json.begin('{').field("kernel", "flashinfer::ComputeLSEFromMDKernel");
  append_launch(json, plan.lse.grid, plan.lse.block, plan.pdl);
  // Statistics lie at the front of the workspace, behind the counters where the call has them.
  const bool counts = problem.phase != Phase::kContext;
  json.key("scalars").begin('[');
  json.value(addresses.workspace + (counts ? kCounterBytes : 0)).value(addresses.lse);
  if (!is_old_layout(plan)) {
    json.value(problem.num_q_heads);
    json.value(problem.lse_stride_tokens != -1 ? problem.lse_stride_tokens
                                               : std::int64_t{problem.num_q_heads});
    json.value(problem.lse_stride_heads != -1 ? problem.lse_stride_heads : std::int64_t{1});
  }
  json.value(tokens * problem.num_q_heads).end(']').end('}');
}

void append_traits(const KernelTraits& traits, const LaunchPlan& plan, JsonWriter& json) {
  json.field("kernel_type", static_cast<int>(traits.kernel_type));
  json.field("mask_type", static_cast<int>(traits.mask_type));
  json.field("scheduler", static_cast<int>(traits.scheduler));
  json.field("multi_ctas_kv_mode", static_cast<int>(traits.multi_ctas_kv_mode));
  json.field("num_ctas_q", plan.num_ctas_q);
  json.field("num_ctas_kv", plan.num_ctas_kv);
  json.field("tile_q", traits.tile_q);
  json.field("step_q", traits.step_q);
  json.field("tile_kv", traits.tile_kv);
  json.field("step_kv", traits.step_kv);
  json.field("num_tokens_per_cta_q", plan.num_tokens_per_cta_q);
  json.field("num_heads_per_cta", plan.num_heads_per_cta);
  json.field("head_dim_per_cta_v", traits.head_dim_per_cta_v);
  json.field("meta_page_size", traits.page_size);
  json.field("meta_sm", metadata_sm(traits.arch));
  json.field("groups_heads_q", traits.groups_heads_q);
  json.field("groups_tokens_heads_q", traits.groups_tokens_heads_q);
  json.field("two_cta_mma", traits.two_cta_mma);
  json.field("skip_softmax", traits.skip_softmax);
}

void append_plan(const LaunchPlan& plan, const AttentionProblem& problem,
                 const PlanAddresses& addresses, JsonWriter& json) {
  json.field("kernel", plan.record->name);
  json.field("sha256", plan.record->sha256.hex());
  json.list("grid", plan.grid);
  json.list("block", plan.block);
  json.list("cluster", plan.cluster);
  json.field("smem", plan.smem);
  json.field("pdl", plan.pdl);
  json.field("cluster_sched_policy", plan.cluster_sched_policy);
  append_traits(plan.record->traits, plan, json);
  if (!is_old_layout(plan)) json.field("reshape_factor_kv", plan.reshape_factor_kv);
  append_reduction(plan, json);
  append_lse(plan, problem, addresses, json);
  json.field("revision", to_string(plan.revision));
  json.key("fallback");
  if (plan.fallback == FallbackReason::kNone) {
    json.raw("null");
  } else {
    json.value(to_string(plan.fallback));
  }
  json.field("min_active_clusters", plan.min_active_clusters);
}

void begin_answer(std::string_view in_text, bool ok, JsonWriter& json) {
  json.begin('{');
  if (!in_text.empty()) json.key("in").raw(in_text);
  json.field("ok", ok);
}

}  // namespace

std::string_view to_string(FallbackReason reason) {
  switch (reason) {
    case FallbackReason::kNone:
      return "";
    case FallbackReason::kRuleFindsNoKernel:
      return "rule_finds_no_kernel";
    case FallbackReason::kRuleSplitsHeadGroups:
      return "rule_splits_head_groups";
    case FallbackReason::kRuleRefuses:
      return "rule_refuses";
  }
  return "";
}

void append_plan_fields(const LaunchPlan& plan, const AttentionProblem& problem, std::string& out) {
  JsonWriter json(out);
  append_plan(plan, problem, {}, json);
}

void append_answer_json(std::string_view in_text, const AttentionProblem& problem,
                        const Selection& selection, std::string& out,
                        const PlanAddresses& addresses) {
  JsonWriter json(out);
  begin_answer(in_text, true, json);
  append_plan(selection.best(), problem, addresses, json);
  json.key("alternatives").begin('[');
  for (std::uint32_t i = 1; i < selection.num_plans; ++i) {
    const LaunchPlan& plan = selection.plans[i];
    json.begin('{');
    json.field("kernel", plan.record->name);
    json.field("sha256", plan.record->sha256.hex());
    json.list("grid", plan.grid);
    json.list("cluster", plan.cluster);
    json.field("multi_ctas_kv_mode", static_cast<int>(plan.record->traits.multi_ctas_kv_mode));
    json.field("num_ctas_kv", plan.num_ctas_kv);
    json.field("min_active_clusters", plan.min_active_clusters);
    json.end('}');
  }
  json.end(']').end('}');
}

void append_error_json(std::string_view in_text, const Error& error, int exit_code,
                       std::string& out) {
  JsonWriter json(out);
  begin_answer(in_text, false, json);
  json.key("error").begin('{').field("code", to_string(error.code()));
  json.field("exit_code", exit_code).field("message", error.message()).end('}').end('}');
}

}  // namespace cubist
