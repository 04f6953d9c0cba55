#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/attention_problem.h"
#include "model/launch_plan.h"

namespace cubist::trtllm_gen {

/// A descriptor's place in a parameter block. The driver encodes into it.
struct alignas(64) TensorMapSlot {
  std::array<std::uint8_t, 128> bytes{};
};

/// n / d by multiply and shift, as the kernels do it.
struct FastDivisor {
  std::int32_t divisor = 0;
  std::uint32_t multiplier = 0;
  std::int32_t addend = 0;
  std::int32_t shift = 0;
};

/// Parameter block "trtllm-gen-fmha-1280" (FlashInfer 0.6.12 to 0.6.17), passed by value.
/// Members keep the published names without their prefix; "unused" ones are never assigned there.
struct alignas(128) Params1280 {
  TensorMapSlot tma_q, tma_k, tma_k_sliding_pool, tma_v, tma_o, tma_k_sf, tma_v_sf;
  std::int32_t logical_grid_dim_x = 0, logical_grid_dim_y = 0, logical_grid_dim_z = 0;  // unused
  std::uint64_t ptr_o = 0;
  std::uint64_t ptr_sf_o = 0;
  std::uint64_t ptr_attention_sinks = 0;
  std::uint64_t ptr_cum_seq_lens_q = 0;
  std::uint64_t ptr_cum_seq_lens_kv = 0;
  std::uint64_t ptr_custom_mask = 0, ptr_custom_mask_offsets = 0;  // unused
  std::uint64_t ptr_debug_o = 0;                                   // unused
  std::uint64_t ptr_first_sparse_mask_offsets_kv = 0;              // unused
  std::uint64_t ptr_multi_ctas_kv_counter = 0;
  std::uint64_t ptr_output_scale = 0;
  std::uint64_t ptr_page_idx_kv = 0;
  std::uint64_t ptr_partial_o = 0;
  std::uint64_t ptr_partial_stats = 0;
  std::uint64_t ptr_sage_sfs_k = 0, ptr_sage_sfs_p = 0, ptr_sage_sfs_q = 0, ptr_sage_sfs_v = 0;
  std::uint64_t ptr_scale_softmax_log2 = 0;
  std::uint64_t ptr_scale_sf_kv = 0;  // unused
  std::uint64_t ptr_scale_sf_o = 0;   // unused
  std::uint64_t ptr_seq_lens_kv = 0;
  std::uint64_t ptr_skip_softmax_stats = 0;  // unused
  std::uint64_t ptr_softmax_stats = 0;
  std::uint64_t ptr_sparse_mla_topk_lens = 0;
  std::int32_t attention_window_size = 0;
  std::int32_t batch_size = 0;
  std::int32_t chunked_attention_size_log2 = 0;
  float inflate_max = 0;  // unused
  std::int32_t log_sage_block_k = 0, log_sage_block_p = 0, log_sage_block_q = 0,
               log_sage_block_v = 0;
  std::int32_t max_seq_len_q = 0;
  std::int32_t max_seq_len_kv = 0;
  std::int32_t max_num_ctas_q = 0;
  std::int32_t max_num_ctas_kv = 0;
  std::int32_t max_num_pages_per_seq_kv = 0;
  std::int32_t num_heads_kv = 0;
  std::int32_t num_heads_q = 0;
  std::int32_t num_heads_q_per_kv = 0;
  FastDivisor num_heads_q_per_kv_divisor;
  std::int64_t num_hidden_elts_o = 0;
  std::int32_t num_pages_in_mem_pool = 0;
  std::int32_t num_tokens_per_cta_q = 0;
  std::int32_t num_tokens_per_page_log2 = 0;
  std::int32_t reshape_factor_kv = 0;
  float output_scale = 0;
  float scale_softmax_log2 = 0;
  float scale_sf_kv = 0;
  float scale_sf_o = 0;
  float skip_softmax_threshold_scale_factor = 0;
  std::int32_t sparse_attn_topk = 0;
  std::int32_t start_token_idx_sf_o = 0;
  std::int32_t sum_of_seq_lens_q = 0;
  std::int32_t sum_of_seq_lens_kv = 0;
  bool use_block_sparse_attention = false;  // unused
  bool uses_shared_paged_kv_idx = false;
};

/// Parameter block "trtllm-gen-fmha-1152" (FlashInfer 0.6.8): six descriptors, no top-k lengths, no
/// reshape factor, the top-k behind the sums.
struct alignas(128) Params1152 {
  TensorMapSlot tma_q, tma_k, tma_v, tma_o, tma_k_sf, tma_v_sf;
  std::int32_t logical_grid_dim_x = 0, logical_grid_dim_y = 0, logical_grid_dim_z = 0;  // unused
  std::uint64_t ptr_o = 0;
  std::uint64_t ptr_sf_o = 0;
  std::uint64_t ptr_attention_sinks = 0;
  std::uint64_t ptr_cum_seq_lens_q = 0;
  std::uint64_t ptr_cum_seq_lens_kv = 0;
  std::uint64_t ptr_custom_mask = 0, ptr_custom_mask_offsets = 0;  // unused
  std::uint64_t ptr_debug_o = 0;                                   // unused
  std::uint64_t ptr_first_sparse_mask_offsets_kv = 0;              // unused
  std::uint64_t ptr_multi_ctas_kv_counter = 0;
  std::uint64_t ptr_output_scale = 0;
  std::uint64_t ptr_page_idx_kv = 0;
  std::uint64_t ptr_partial_o = 0;
  std::uint64_t ptr_partial_stats = 0;
  std::uint64_t ptr_sage_sfs_k = 0, ptr_sage_sfs_p = 0, ptr_sage_sfs_q = 0, ptr_sage_sfs_v = 0;
  std::uint64_t ptr_scale_softmax_log2 = 0;
  std::uint64_t ptr_scale_sf_kv = 0;  // unused
  std::uint64_t ptr_scale_sf_o = 0;   // unused
  std::uint64_t ptr_seq_lens_kv = 0;
  std::uint64_t ptr_skip_softmax_stats = 0;  // unused
  std::uint64_t ptr_softmax_stats = 0;
  std::int32_t attention_window_size = 0;
  std::int32_t batch_size = 0;
  std::int32_t chunked_attention_size_log2 = 0;
  float inflate_max = 0;  // unused
  std::int32_t log_sage_block_k = 0, log_sage_block_p = 0, log_sage_block_q = 0,
               log_sage_block_v = 0;
  std::int32_t max_seq_len_q = 0;
  std::int32_t max_seq_len_kv = 0;
  std::int32_t max_num_ctas_q = 0;
  std::int32_t max_num_ctas_kv = 0;
  std::int32_t max_num_pages_per_seq_kv = 0;
  std::int32_t num_heads_kv = 0;
  std::int32_t num_heads_q = 0;
  std::int32_t num_heads_q_per_kv = 0;
  FastDivisor num_heads_q_per_kv_divisor;
  std::int64_t num_hidden_elts_o = 0;
  std::int32_t num_pages_in_mem_pool = 0;
  std::int32_t num_tokens_per_cta_q = 0;
  std::int32_t num_tokens_per_page_log2 = 0;
  float output_scale = 0;
  float scale_softmax_log2 = 0;
  float scale_sf_kv = 0;
  float scale_sf_o = 0;
  float skip_softmax_threshold_scale_factor = 0;
  std::int32_t start_token_idx_sf_o = 0;
  std::int32_t sum_of_seq_lens_q = 0;
  std::int32_t sum_of_seq_lens_kv = 0;
  std::int32_t sparse_attn_topk = 0;
  bool use_block_sparse_attention = false;  // unused
  bool uses_shared_paged_kv_idx = false;
};

/// Where the plain members begin, behind the descriptors.
inline constexpr std::size_t kParams1280Scalars = 896;
inline constexpr std::size_t kParams1152Scalars = 768;

/// Everything but the descriptors. problem: as prepare_problem gives it; num_sms: of the device.
/// Pure. errors kInvalidArgument: a value that does not fit its member, a page that is no power of
/// two.
Status fill_params(const AttentionProblem& problem, const LaunchPlan& plan, std::int32_t num_sms,
                   const Addresses& addresses, Params1280& params);
Status fill_params(const AttentionProblem& problem, const LaunchPlan& plan, std::int32_t num_sms,
                   const Addresses& addresses, Params1152& params);

}  // namespace cubist::trtllm_gen
