#include "launcher/trtllm_gen/params.h"

#include <bit>
#include <limits>
#include <type_traits>

#include "launcher/scales.h"
#include "launcher/trtllm_gen/tensor_maps.h"
#include "launcher/trtllm_gen/workspace.h"

namespace cubist::trtllm_gen {
namespace {

// Offsets of the published blocks, one check for each member that anything reads.
#define CUBIST_AT(type, member, offset) \
  static_assert(offsetof(type, member) == (offset), "published offset of " #member)
static_assert(sizeof(Params1280) == 1280 && alignof(Params1280) == 128);
CUBIST_AT(Params1280, tma_k_sliding_pool, 256);
CUBIST_AT(Params1280, tma_v, 384);
CUBIST_AT(Params1280, tma_v_sf, 768);
CUBIST_AT(Params1280, logical_grid_dim_x, kParams1280Scalars);
CUBIST_AT(Params1280, ptr_o, 912);
CUBIST_AT(Params1280, ptr_multi_ctas_kv_counter, 984);
CUBIST_AT(Params1280, ptr_output_scale, 992);
CUBIST_AT(Params1280, ptr_page_idx_kv, 1000);
CUBIST_AT(Params1280, ptr_partial_o, 1008);
CUBIST_AT(Params1280, ptr_sage_sfs_k, 1024);
CUBIST_AT(Params1280, ptr_scale_softmax_log2, 1056);
CUBIST_AT(Params1280, ptr_seq_lens_kv, 1080);
CUBIST_AT(Params1280, ptr_softmax_stats, 1096);
CUBIST_AT(Params1280, ptr_sparse_mla_topk_lens, 1104);
CUBIST_AT(Params1280, attention_window_size, 1112);
CUBIST_AT(Params1280, log_sage_block_k, 1128);
CUBIST_AT(Params1280, max_seq_len_q, 1144);
CUBIST_AT(Params1280, max_num_pages_per_seq_kv, 1160);
CUBIST_AT(Params1280, num_heads_q_per_kv_divisor, 1176);
CUBIST_AT(Params1280, num_hidden_elts_o, 1192);
CUBIST_AT(Params1280, num_tokens_per_cta_q, 1204);
CUBIST_AT(Params1280, reshape_factor_kv, 1212);
CUBIST_AT(Params1280, output_scale, 1216);
CUBIST_AT(Params1280, scale_sf_o, 1228);
CUBIST_AT(Params1280, sparse_attn_topk, 1236);
CUBIST_AT(Params1280, sum_of_seq_lens_kv, 1248);
CUBIST_AT(Params1280, uses_shared_paged_kv_idx, 1253);

static_assert(sizeof(Params1152) == 1152 && alignof(Params1152) == 128);
CUBIST_AT(Params1152, tma_v, 256);
CUBIST_AT(Params1152, tma_v_sf, 640);
CUBIST_AT(Params1152, logical_grid_dim_x, kParams1152Scalars);
CUBIST_AT(Params1152, ptr_o, 784);
CUBIST_AT(Params1152, ptr_multi_ctas_kv_counter, 856);
CUBIST_AT(Params1152, ptr_page_idx_kv, 872);
CUBIST_AT(Params1152, ptr_scale_softmax_log2, 928);
CUBIST_AT(Params1152, ptr_softmax_stats, 968);
CUBIST_AT(Params1152, attention_window_size, 976);
CUBIST_AT(Params1152, max_seq_len_q, 1008);
CUBIST_AT(Params1152, num_heads_q_per_kv_divisor, 1040);
CUBIST_AT(Params1152, num_hidden_elts_o, 1056);
CUBIST_AT(Params1152, output_scale, 1076);
CUBIST_AT(Params1152, start_token_idx_sf_o, 1096);
CUBIST_AT(Params1152, sum_of_seq_lens_kv, 1104);
CUBIST_AT(Params1152, sparse_attn_topk, 1108);
CUBIST_AT(Params1152, uses_shared_paged_kv_idx, 1113);
#undef CUBIST_AT

constexpr std::int32_t kIntMax = std::numeric_limits<std::int32_t>::max();

FastDivisor fast_divisor(std::int32_t divisor, HeuristicRevision revision) {
  const auto d = static_cast<std::uint32_t>(divisor);
  std::int32_t shift = static_cast<std::int32_t>(std::bit_width(d - 1)) - 1;
  if (revision == HeuristicRevision::kTrtllmGenFmha_0_6_8) shift = std::max(shift, 0);
  const std::uint64_t power = std::uint64_t{1} << (32 + shift);
  return {divisor, static_cast<std::uint32_t>((power + d - 1) / d), 0, shift};
}

std::int32_t log2_exact(std::int32_t value) {
  return static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(value))) - 1;
}

/// log2 of a Sage block, 0 when off.
std::int32_t sage_log2(std::uint8_t block) { return block == 0 ? 0 : log2_exact(block); }

Status check_ranges(const AttentionProblem& p) {
  const auto fits = [](std::string_view field, std::int64_t value) -> Status {
    if (value >= 0 && value <= kIntMax) return {};
    return fail(StatusCode::kInvalidArgument, "{} {}: the kernels hold it in 32 bits", field,
                value);
  };
  CUBIST_RETURN_IF_ERROR(fits("sum_seq_q", p.sum_seq_q));
  CUBIST_RETURN_IF_ERROR(fits("sum_seq_kv", p.sum_seq_kv));
  CUBIST_RETURN_IF_ERROR(fits("num_pages", p.num_pages * 2));
  if (p.phase != Phase::kRagged && !std::has_single_bit(static_cast<std::uint32_t>(p.page_size))) {
    return fail(StatusCode::kInvalidArgument, "page_size {}: must be a power of two", p.page_size);
  }
  return {};
}

template <class Params>
void fill_pointers(const AttentionProblem& p, const LaunchPlan& plan, std::int32_t num_sms,
                   const Addresses& a, Params& out) {
  const Workspace workspace = carve_workspace(p, plan, num_sms);
  const auto piece = [&](std::uint64_t offset) {
    return offset == Workspace::kNone ? 0 : a.workspace + offset;
  };
  const bool paged = p.phase != Phase::kRagged;
  const bool decode = p.phase == Phase::kDecode;
  out.ptr_o = a.o;
  out.ptr_sf_o = p.dtype_o == Dtype::kE2m1 ? a.o_sf : 0;
  out.ptr_attention_sinks = p.sinks ? a.sinks : 0;
  out.ptr_cum_seq_lens_q = !decode || p.varlen_q ? a.cum_seq_lens_q : 0;
  out.ptr_cum_seq_lens_kv = decode ? 0 : a.cum_seq_lens_kv;
  out.ptr_multi_ctas_kv_counter = piece(workspace.counters);
  out.ptr_output_scale = p.bmm2_scale.on_device ? a.bmm2_scale : 0;
  out.ptr_page_idx_kv = paged ? a.block_table : 0;
  out.ptr_partial_stats = piece(workspace.scratch);
  out.ptr_partial_o = out.ptr_partial_stats + workspace.partial_stats_bytes;
  out.ptr_scale_softmax_log2 = p.bmm1_scale.on_device ? a.bmm1_scale : 0;
  out.ptr_seq_lens_kv = a.seq_lens_kv;
  out.ptr_softmax_stats = piece(workspace.softmax_stats);
}

void fill_heads(const AttentionProblem& p, const LaunchPlan& plan, auto& out) {
  out.num_heads_kv = p.num_kv_heads;
  out.num_heads_q = p.num_q_heads;
  out.num_heads_q_per_kv = p.num_q_heads / p.num_kv_heads;
  out.num_heads_q_per_kv_divisor = fast_divisor(out.num_heads_q_per_kv, plan.revision);
  out.num_hidden_elts_o = std::int64_t{p.num_q_heads} * p.head_dim_qk;  // of Q and K, as published
}

void fill_scales(const AttentionProblem& p, auto& out) {
  // A device scalar already holds log2(e); the value beside it is not read.
  out.scale_softmax_log2 = launcher::scale_log2(p.bmm1_scale.on_device ? 1.0 : p.bmm1_scale.value);
  out.output_scale = p.bmm2_scale.on_device ? 1.0F : static_cast<float>(p.bmm2_scale.value);
  out.scale_sf_kv = p.phase == Phase::kRagged ? 0.0F : 1.0F;
  out.scale_sf_o = p.o_sf_scale;
  out.skip_softmax_threshold_scale_factor = p.skip_softmax.value_or(0.0F);
  out.start_token_idx_sf_o = p.o_sf_start_index;
}

void fill_lengths(const AttentionProblem& p, const LaunchPlan& plan, auto& out) {
  const bool paged = p.phase != Phase::kRagged;
  out.attention_window_size = p.window_left < 0 ? kIntMax : p.window_left + 1;
  out.batch_size = p.batch;
  out.max_seq_len_q = p.max_q_len;
  out.max_seq_len_kv = p.max_kv_len;
  out.max_num_ctas_q = plan.num_ctas_q;
  out.max_num_ctas_kv = plan.num_ctas_kv;
  out.max_num_pages_per_seq_kv = paged ? p.max_pages_per_seq : 0;
  out.num_pages_in_mem_pool =
      paged ? static_cast<std::int32_t>(p.num_pages * (p.is_mla ? 1 : 2)) : 0;
  out.num_tokens_per_cta_q = plan.num_tokens_per_cta_q;
  out.num_tokens_per_page_log2 = paged ? log2_exact(p.page_size) : -1;
  out.sparse_attn_topk = p.sparse_mla_topk;
  out.sum_of_seq_lens_q = static_cast<std::int32_t>(p.sum_seq_q);
  out.sum_of_seq_lens_kv = paged ? 0 : static_cast<std::int32_t>(p.sum_seq_kv);
  out.uses_shared_paged_kv_idx = paged && p.uses_shared_paged_kv_idx;
}

template <class Params>
Status fill_common(const AttentionProblem& p, const LaunchPlan& plan, std::int32_t num_sms,
                   const Addresses& addresses, Params& out) {
  CUBIST_RETURN_IF_ERROR(check_ranges(p));
  fill_pointers(p, plan, num_sms, addresses, out);
  fill_heads(p, plan, out);
  fill_scales(p, out);
  fill_lengths(p, plan, out);
  return {};
}

}  // namespace

Status fill_params(const AttentionProblem& problem, const LaunchPlan& plan, std::int32_t num_sms,
                   const Addresses& addresses, Params1280& params) {
  CUBIST_RETURN_IF_ERROR(fill_common(problem, plan, num_sms, addresses, params));
  const KernelTraits& traits = plan.record->traits;
  params.ptr_sage_sfs_q = traits.sage_block_q == 0 ? 0 : addresses.sage_scales[0];
  params.ptr_sage_sfs_k = traits.sage_block_k == 0 ? 0 : addresses.sage_scales[1];
  params.ptr_sage_sfs_p = traits.sage_block_p == 0 ? 0 : addresses.sage_scales[2];
  params.ptr_sage_sfs_v = traits.sage_block_v == 0 ? 0 : addresses.sage_scales[3];
  params.log_sage_block_q = sage_log2(traits.sage_block_q);
  params.log_sage_block_k = sage_log2(traits.sage_block_k);
  params.log_sage_block_p = sage_log2(traits.sage_block_p);
  params.log_sage_block_v = sage_log2(traits.sage_block_v);
  params.ptr_sparse_mla_topk_lens = problem.sparse_dynamic ? addresses.topk_lens : 0;
  params.reshape_factor_kv = kv_reshape_factor(problem, plan);
  return {};
}

Status fill_params(const AttentionProblem& problem, const LaunchPlan& plan, std::int32_t num_sms,
                   const Addresses& addresses, Params1152& params) {
  return fill_common(problem, plan, num_sms, addresses, params);
}

}  // namespace cubist::trtllm_gen
