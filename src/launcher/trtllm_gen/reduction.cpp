#include "launcher/trtllm_gen/reduction.h"

#include <algorithm>
#include <string_view>

#include "launcher/device_pointer.h"
#include "launcher/scales.h"
#include "launcher/trtllm_gen/workspace.h"

namespace cubist::trtllm_gen {
namespace {

using launcher::device_pointer;

// Threads of the kernel, kernels/aux/reduce.cuh.
constexpr std::uint32_t kReduceThreads = 512;
// What e4m3 kernels multiply probabilities with before they round them: the largest e4m3 number.
// Their sums carry it, their O does not.
constexpr float kE4m3ProbabilityScale = 448.0F;

bool serves_o(Dtype q, Dtype o) {
  const bool has_kernel = o == Dtype::kBf16 || o == Dtype::kFp16 || o == Dtype::kE4m3;
  return has_kernel && (q == o || q == Dtype::kE4m3);
}

std::int32_t columns_per_cta(const KernelTraits& traits) {
  return traits.head_dim_per_cta_v * (traits.two_cta_mma ? 2 : 1);
}

Status check_kernel(const KernelTraits& t) {
  const std::int32_t columns = columns_per_cta(t);
  if (t.multi_ctas_kv_mode != MultiCtasKvMode::kSeparateReduction) {
    return fail(StatusCode::kInvalidArgument,
                "multi_ctas_kv_mode {}: only gmem_separate kernels leave partial results",
                to_string(t.multi_ctas_kv_mode));
  }
  if (t.kernel_type != KernelType::kKeepsMmaAbGeneration || (t.tile_q != 64 && t.tile_q != 128) ||
      t.tile_kv != 128) {
    return fail(StatusCode::kUnsupported,
                "reduction of a {} kernel with tile_q {} and tile_kv {}: served are keeps kernels "
                "with tile_q 64 or 128 and tile_kv 128",
                to_string(t.kernel_type), t.tile_q, t.tile_kv);
  }
  if (columns != 64 && columns != 128 && columns != 256 && columns != 512) {
    return fail(StatusCode::kUnsupported,
                "reduction of {} columns a CTA: served are 64, 128, 256 and 512", columns);
  }
  if (!serves_o(t.dtype_q, t.dtype_o)) {
    return fail(StatusCode::kUnsupported,
                "reduction to {} with a {} query: served are the query's own type, and bf16, fp16 "
                "and e4m3 for an e4m3 query",
                to_string(t.dtype_o), to_string(t.dtype_q));
  }
  return {};
}

/// The rows and columns of all tiles together must be those of O.
Status check_tiles(const AttentionProblem& p, const LaunchPlan& plan) {
  const KernelTraits& t = plan.record->traits;
  const std::int64_t rows = std::int64_t{plan.num_heads_per_cta} * plan.num_tokens_per_cta_q;
  const ReductionPlan& r = plan.reduction;
  const bool covers_heads =
      std::int64_t{r.num_head_ctas} * plan.num_heads_per_cta == p.num_q_heads && rows > 0 &&
      rows <= t.tile_q;
  const bool covers_columns =
      r.head_dim_per_cta == columns_per_cta(t) &&
      std::int64_t{r.num_head_dim_ctas} * r.head_dim_per_cta == p.head_dim_vo;
  if (!covers_heads) {
    return fail(StatusCode::kUnsupported,
                "reduction: {} head CTAs of {} heads and {} tokens do not make {} query heads in "
                "tiles of {} rows",
                r.num_head_ctas, plan.num_heads_per_cta, plan.num_tokens_per_cta_q, p.num_q_heads,
                t.tile_q);
  }
  if (!covers_columns) {
    return fail(StatusCode::kUnsupported,
                "reduction: {} CTAs of {} columns do not make head_dim_vo {}", r.num_head_dim_ctas,
                r.head_dim_per_cta, p.head_dim_vo);
  }
  return {};
}

Status check_grid(const AttentionProblem& p, const LaunchPlan& plan) {
  const ReductionPlan& r = plan.reduction;
  const bool fits = r.needed && r.block == kReduceThreads && r.ctas_per_tile > 0 &&
                    plan.num_ctas_q > 0 && plan.num_ctas_kv > 0 && p.batch > 0 &&
                    r.grid[0] == std::int64_t{plan.num_ctas_q} * r.ctas_per_tile &&
                    r.grid[1] == std::int64_t{r.num_head_ctas} * r.num_head_dim_ctas &&
                    r.grid[2] == static_cast<std::uint32_t>(p.batch);
  if (fits) return {};
  return fail(StatusCode::kInvalidArgument,
              "reduction grid {}x{}x{} of {} threads: {} q CTAs x {} workers, {} x {} CTAs and "
              "batch {} need another",
              r.grid[0], r.grid[1], r.grid[2], r.block, plan.num_ctas_q, r.ctas_per_tile,
              r.num_head_ctas, r.num_head_dim_ctas, p.batch);
}

Status check_address(std::string_view name, std::uint64_t address, std::uint64_t alignment) {
  if (address != 0 && address % alignment == 0) return {};
  return fail(StatusCode::kInvalidArgument,
              "reduction: {} at {:#x}: a device address aligned to {} bytes is needed", name,
              address, alignment);
}

Status check_addresses(const AttentionProblem& p, const LaunchPlan& plan, const Addresses& a) {
  CUBIST_RETURN_IF_ERROR(check_address("o", a.o, 16));
  CUBIST_RETURN_IF_ERROR(check_address("workspace", a.workspace, 16));
  CUBIST_RETURN_IF_ERROR(check_address("seq_lens_kv", a.seq_lens_kv, 4));
  if (p.varlen_q) CUBIST_RETURN_IF_ERROR(check_address("cum_seq_lens_q", a.cum_seq_lens_q, 4));
  if (p.sinks) CUBIST_RETURN_IF_ERROR(check_address("sinks", a.sinks, 4));
  if (p.bmm1_scale.on_device) CUBIST_RETURN_IF_ERROR(check_address("bmm1_scale", a.bmm1_scale, 4));
  if (plan.record->traits.sparse_type != SparseType::kDynamicTokens) return {};
  return check_address(
      "topk_lens (the top-k length of each token, needed by a dynamic "
      "token-sparse kernel)",
      a.topk_lens, 4);
}

void fill_shape(const AttentionProblem& p, const LaunchPlan& plan, CubistReduceParams& out) {
  const KernelTraits& traits = plan.record->traits;
  out.scale_softmax_log2 = p.bmm1_scale.on_device ? 0.0F : launcher::scale_log2(p.bmm1_scale.value);
  out.sum_scale = traits.dtype_q == Dtype::kE4m3 ? kE4m3ProbabilityScale : 1.0F;
  out.max_q_len = p.max_q_len;
  out.num_q_heads = p.num_q_heads;
  out.head_dim_vo = p.head_dim_vo;
  out.head_dim_per_cta = plan.reduction.head_dim_per_cta;
  out.tile_q = traits.tile_q;
  out.num_heads_per_cta = plan.num_heads_per_cta;
  out.num_tokens_per_cta_q = plan.num_tokens_per_cta_q;
  out.num_ctas_q = plan.num_ctas_q;
  out.num_ctas_kv = plan.num_ctas_kv;
  out.num_head_dim_ctas = plan.reduction.num_head_dim_ctas;
  out.ctas_per_tile = plan.reduction.ctas_per_tile;
  out.sparse_topk = std::max(p.sparse_mla_topk, 0);
}

}  // namespace

Status check_reduction(const AttentionProblem& problem, const LaunchPlan& plan) {
  const KernelTraits& traits = plan.record->traits;
  CUBIST_RETURN_IF_ERROR(check_kernel(traits));
  if (traits.sparse_type == SparseType::kDynamicTokens && plan.num_tokens_per_cta_q != 1) {
    return fail(StatusCode::kUnsupported,
                "reduction: dynamic top-k lengths with {} tokens in a CTA: served is one",
                plan.num_tokens_per_cta_q);
  }
  CUBIST_RETURN_IF_ERROR(check_tiles(problem, plan));
  return check_grid(problem, plan);
}

Result<CubistReduceParams> fill_reduction_params(const AttentionProblem& problem,
                                                 const LaunchPlan& plan, std::int32_t num_sms,
                                                 const Addresses& addresses) {
  CUBIST_RETURN_IF_ERROR(check_reduction(problem, plan));
  CUBIST_RETURN_IF_ERROR(check_addresses(problem, plan, addresses));
  const Workspace workspace = carve_workspace(problem, plan, num_sms);
  const std::uint64_t scratch = addresses.workspace + workspace.scratch;
  const bool dynamic = plan.record->traits.sparse_type == SparseType::kDynamicTokens;

  CubistReduceParams params = {};
  params.partial_stats = device_pointer<const float>(scratch);
  params.partial_o = device_pointer<const void>(scratch + workspace.partial_stats_bytes);
  params.o = device_pointer<void>(addresses.o);
  if (workspace.softmax_stats != Workspace::kNone) {
    params.softmax_stats = device_pointer<float>(addresses.workspace + workspace.softmax_stats);
  }
  params.sinks = device_pointer<const float>(problem.sinks ? addresses.sinks : 0);
  params.seq_lens_kv = device_pointer<const std::int32_t>(addresses.seq_lens_kv);
  params.cum_seq_lens_q =
      device_pointer<const std::int32_t>(problem.varlen_q ? addresses.cum_seq_lens_q : 0);
  params.topk_lens = device_pointer<const std::int32_t>(dynamic ? addresses.topk_lens : 0);
  params.bmm1_scale_log2 =
      device_pointer<const float>(problem.bmm1_scale.on_device ? addresses.bmm1_scale : 0);
  fill_shape(problem, plan, params);
  return params;
}

}  // namespace cubist::trtllm_gen
