#include "capi/structs.h"

#include "support/catch.h"

using namespace cubist;

TEST_CASE("a problem made with INIT is the default problem") {
  const cubist_attention_problem c = CUBIST_ATTENTION_PROBLEM_INIT;
  const AttentionProblem from = capi::from_c(c).value();
  const AttentionProblem plain;
  CHECK(from.phase == plain.phase);
  CHECK(from.dtype_q == plain.dtype_q);
  CHECK(from.dtype_k == plain.dtype_k);
  CHECK(from.dtype_v == plain.dtype_v);
  CHECK(from.dtype_o == plain.dtype_o);
  CHECK(from.head_dim_qk == plain.head_dim_qk);
  CHECK(from.head_dim_vo == plain.head_dim_vo);
  CHECK(from.num_q_heads == plain.num_q_heads);
  CHECK(from.num_kv_heads == plain.num_kv_heads);
  CHECK(from.batch == plain.batch);
  CHECK(from.max_q_len == plain.max_q_len);
  CHECK(from.max_kv_len == plain.max_kv_len);
  CHECK(from.sum_seq_q == plain.sum_seq_q);
  CHECK(from.sum_seq_kv == plain.sum_seq_kv);
  CHECK(from.page_size == plain.page_size);
  CHECK(from.max_pages_per_seq == plain.max_pages_per_seq);
  CHECK(from.num_pages == plain.num_pages);
  CHECK(from.kv_layout == plain.kv_layout);
  CHECK(from.kv_combined == plain.kv_combined);
  CHECK(from.is_mla == plain.is_mla);
  CHECK(from.q_stride_tokens == plain.q_stride_tokens);
  CHECK(from.q_stride_heads == plain.q_stride_heads);
  CHECK(from.kv_stride_batch == plain.kv_stride_batch);
  CHECK(from.kv_stride_heads == plain.kv_stride_heads);
  CHECK(from.kv_stride_tokens == plain.kv_stride_tokens);
  CHECK(from.k_stride_tokens == plain.k_stride_tokens);
  CHECK(from.k_stride_heads == plain.k_stride_heads);
  CHECK(from.v_stride_tokens == plain.v_stride_tokens);
  CHECK(from.v_stride_heads == plain.v_stride_heads);
  CHECK(from.window_left == plain.window_left);
  CHECK(from.chunk_size == plain.chunk_size);
  CHECK(from.causal == plain.causal);
  CHECK(from.custom_mask == plain.custom_mask);
  CHECK(from.packed_qkv == plain.packed_qkv);
  CHECK(from.varlen_q == plain.varlen_q);
  CHECK(from.sinks == plain.sinks);
  CHECK(from.lse == plain.lse);
  CHECK(from.lse_stride_tokens == plain.lse_stride_tokens);
  CHECK(from.lse_stride_heads == plain.lse_stride_heads);
  CHECK(from.sparse_mla_topk == plain.sparse_mla_topk);
  CHECK(from.sparse_dynamic == plain.sparse_dynamic);
  CHECK(from.uses_shared_paged_kv_idx == plain.uses_shared_paged_kv_idx);
  CHECK(from.o_sf_scale == plain.o_sf_scale);
  CHECK(from.o_sf_start_index == plain.o_sf_start_index);
  CHECK(from.skip_softmax == plain.skip_softmax);
  CHECK(from.enable_pdl == plain.enable_pdl);
  CHECK(from.workspace_size == plain.workspace_size);
  CHECK(from.sage_blocks == plain.sage_blocks);
  CHECK(from.max_active_clusters == plain.max_active_clusters);
  CHECK(from.batch_invariant == plain.batch_invariant);
}

TEST_CASE("every field of a problem arrives where it belongs") {
  cubist_attention_problem c = CUBIST_ATTENTION_PROBLEM_INIT;
  // Numbers by position: the enums and booleans 1, everything else its own value.
  c.phase = c.kv_layout = 1;
  c.dtype_q = 2, c.dtype_k = 3, c.dtype_v = 4, c.dtype_o = 5;
  c.head_dim_qk = 101, c.head_dim_vo = 102, c.num_q_heads = 103, c.num_kv_heads = 104;
  c.batch = 105, c.max_q_len = 106, c.max_kv_len = 107, c.page_size = 108;
  c.max_pages_per_seq = 109, c.sum_seq_q = 110, c.sum_seq_kv = 111, c.num_pages = 112;
  c.q_stride_tokens = 113, c.q_stride_heads = 114, c.kv_stride_batch = 115;
  c.kv_stride_heads = 116, c.kv_stride_tokens = 117, c.k_stride_tokens = 118;
  c.k_stride_heads = 119, c.v_stride_tokens = 120, c.v_stride_heads = 121;
  c.lse_stride_tokens = 122, c.lse_stride_heads = 123, c.workspace_size = 124;
  c.kv_combined = c.is_mla = c.custom_mask = c.packed_qkv = c.varlen_q = c.sinks = c.lse = 1;
  c.causal = c.uses_shared_paged_kv_idx = c.enable_pdl = 0, c.sparse_dynamic = 1;
  c.window_left = 125, c.chunk_size = 126, c.sparse_mla_topk = 127, c.o_sf_start_index = 128;
  c.o_sf_scale = 129.0F, c.skip_softmax = 130.0F, c.max_active_clusters = 131;
  c.batch_invariant = 1;
  for (int i = 0; i < 4; ++i) c.sage_blocks[i] = 132 + i;
  const AttentionProblem p = capi::from_c(c).value();
  CHECK(p.phase == Phase::kContext);
  CHECK(p.kv_layout == KvLayout::kNhd);
  CHECK(p.dtype_q == Dtype::kFp32);
  CHECK(p.dtype_k == Dtype::kInt8);
  CHECK(p.dtype_v == Dtype::kInt32);
  CHECK(p.dtype_o == Dtype::kE4m3);
  CHECK(p.head_dim_qk == 101);
  CHECK(p.head_dim_vo == 102);
  CHECK(p.num_q_heads == 103);
  CHECK(p.num_kv_heads == 104);
  CHECK(p.batch == 105);
  CHECK(p.max_q_len == 106);
  CHECK(p.max_kv_len == 107);
  CHECK(p.page_size == 108);
  CHECK(p.max_pages_per_seq == 109);
  CHECK(p.sum_seq_q == 110);
  CHECK(p.sum_seq_kv == 111);
  CHECK(p.num_pages == 112);
  CHECK(p.q_stride_tokens == 113);
  CHECK(p.q_stride_heads == 114);
  CHECK(p.kv_stride_batch == 115);
  CHECK(p.kv_stride_heads == 116);
  CHECK(p.kv_stride_tokens == 117);
  CHECK(p.k_stride_tokens == 118);
  CHECK(p.k_stride_heads == 119);
  CHECK(p.v_stride_tokens == 120);
  CHECK(p.v_stride_heads == 121);
  CHECK(p.lse_stride_tokens == 122);
  CHECK(p.lse_stride_heads == 123);
  CHECK(p.workspace_size == 124);
  CHECK((p.kv_combined && p.is_mla && p.custom_mask && p.packed_qkv && p.varlen_q && p.sinks &&
         p.lse && p.sparse_dynamic));
  CHECK_FALSE((p.causal || p.uses_shared_paged_kv_idx || p.enable_pdl));
  CHECK(p.window_left == 125);
  CHECK(p.chunk_size == 126);
  CHECK(p.sparse_mla_topk == 127);
  CHECK(p.o_sf_start_index == 128);
  CHECK(p.o_sf_scale == 129.0F);
  CHECK(p.skip_softmax == 130.0F);
  CHECK(p.max_active_clusters == 131);
  CHECK(p.batch_invariant);
  CHECK(p.sage_blocks == std::array<std::int32_t, 4>{132, 133, 134, 135});
}

TEST_CASE("launch arguments arrive where they belong") {
  cubist_attention_args c = CUBIST_ATTENTION_ARGS_INIT;
  const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
  c.q_scale = 1.5F, c.k_scale = 2.5F, c.v_scale = 3.5F, c.sm_scale = 4.5F, c.o_scale = 5.5F;
  c.q = at(1), c.k = at(2), c.v = at(3), c.o = at(4);
  c.block_table = static_cast<std::int32_t*>(at(5));
  c.seq_lens_kv = static_cast<std::int32_t*>(at(6));
  c.cum_seq_lens_q = static_cast<std::int32_t*>(at(7));
  c.sinks = static_cast<float*>(at(8)), c.lse = static_cast<float*>(at(9));
  c.bmm1_scale_log2 = static_cast<float*>(at(10)), c.bmm2_scale = static_cast<float*>(at(11));
  c.workspace = at(12), c.workspace_size = 13, c.o_stride_tokens = 14, c.o_stride_heads = 15;
  c.cum_seq_lens_kv = static_cast<std::int32_t*>(at(16)), c.k_sf = at(17), c.v_sf = at(18);
  c.o_sf = at(19), c.sliding_pool = at(20), c.topk_lens = static_cast<std::int32_t*>(at(21));
  for (std::size_t i = 0; i < 4; ++i) c.sage_scales[i] = static_cast<float*>(at(22 + i));
  c.o_sf_scale = 26.0F, c.o_sf_start_index = 27;
  cubist_tensor_layout layout = CUBIST_TENSOR_LAYOUT_INIT;
  layout.dtype = CUBIST_DTYPE_E4M3, layout.rank = 3;
  for (int i = 0; i < 4; ++i) layout.shape[i] = 30 + i, layout.strides[i] = 40 + i;
  c.o_layout = &layout;
  const launcher::CallArgs args = capi::from_c(c).value();
  CHECK(args.scales.q_scale == 1.5F);
  CHECK(args.scales.k_scale == 2.5F);
  CHECK(args.scales.v_scale == 3.5F);
  CHECK(args.scales.sm_scale == 4.5F);
  CHECK(args.scales.o_scale == 5.5F);
  CHECK(args.q == 1);
  CHECK(args.k == 2);
  CHECK(args.v == 3);
  CHECK(args.o == 4);
  CHECK(args.block_table == 5);
  CHECK(args.seq_lens_kv == 6);
  CHECK(args.cum_seq_lens_q == 7);
  CHECK(args.sinks == 8);
  CHECK(args.lse == 9);
  CHECK(args.bmm1_scale_log2 == 10);
  CHECK(args.bmm2_scale == 11);
  CHECK(args.workspace == 12);
  CHECK(args.workspace_size == 13);
  CHECK(args.o_stride_tokens == 14);
  CHECK(args.o_stride_heads == 15);
  CHECK(args.cum_seq_lens_kv == 16);
  CHECK(args.k_sf == 17);
  CHECK(args.v_sf == 18);
  CHECK(args.o_sf == 19);
  CHECK(args.sliding_pool == 20);
  CHECK(args.topk_lens == 21);
  CHECK(args.sage_scales == std::array<std::uint64_t, 4>{22, 23, 24, 25});
  CHECK(args.o_sf_scale == 26.0F);
  CHECK(args.o_sf_start_index == 27);
  REQUIRE(args.o_layout.has_value());
  CHECK(args.o_layout->dtype == Dtype::kE4m3);
  CHECK(args.o_layout->shape == std::array<std::int64_t, 4>{30, 31, 32, 0});
  CHECK(args.o_layout->strides == std::array<std::int64_t, 4>{40, 41, 42, 0});
}

TEST_CASE("launch arguments of the INIT leave everything out") {
  const cubist_attention_args c = CUBIST_ATTENTION_ARGS_INIT;
  const launcher::CallArgs args = capi::from_c(c).value();
  CHECK_FALSE(args.o_layout.has_value());
  CHECK_FALSE(args.o_sf_scale.has_value());
  CHECK_FALSE(args.o_sf_start_index.has_value());
  CHECK(args.o_stride_tokens == -1);
  CHECK(args.scales.q_scale == 1.0F);
  CHECK(args.scales.sm_scale == 0.0F);
}

TEST_CASE("a device profile survives the way to C and back") {
  DeviceProfile device;
  device.name =
      "NVIDIA GB200 with a name that is much longer than any device has had so far, really";
  device.sm = 100;
  device.num_sms = 148;
  device.max_smem_optin = 232448;
  device.max_active_clusters[4] = 33;
  cubist_device c = CUBIST_DEVICE_INIT;
  capi::to_c(device, c);
  const DeviceProfile back = capi::from_c(c).value();
  CHECK(back.name == device.name.substr(0, sizeof(c.name) - 1));
  CHECK(back.sm == 100);
  CHECK(back.num_sms == 148);
  CHECK(back.max_smem_optin == 232448);
  CHECK(back.max_active_clusters == device.max_active_clusters);
}
