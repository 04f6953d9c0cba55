#include "capi/structs.h"

#include <algorithm>
#include <cstring>

namespace cubist::capi {
namespace {

Status check_enum(std::string_view field, std::int32_t value, std::int32_t last) {
  if (value >= 0 && value <= last) return {};
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be 0..{}", field, value, last);
}

Status check_bool(std::string_view field, std::int32_t value) {
  return check_enum(field, value, 1);
}

Status check_fields(const cubist_attention_problem& c) {
  CUBIST_RETURN_IF_ERROR(check_enum("phase", c.phase, CUBIST_PHASE_RAGGED));
  CUBIST_RETURN_IF_ERROR(check_enum("dtype_q", c.dtype_q, CUBIST_DTYPE_E2M1));
  CUBIST_RETURN_IF_ERROR(check_enum("dtype_k", c.dtype_k, CUBIST_DTYPE_E2M1));
  CUBIST_RETURN_IF_ERROR(check_enum("dtype_v", c.dtype_v, CUBIST_DTYPE_E2M1));
  CUBIST_RETURN_IF_ERROR(check_enum("dtype_o", c.dtype_o, CUBIST_DTYPE_E2M1));
  CUBIST_RETURN_IF_ERROR(check_enum("kv_layout", c.kv_layout, CUBIST_KV_LAYOUT_NHD));
  CUBIST_RETURN_IF_ERROR(check_bool("kv_combined", c.kv_combined));
  CUBIST_RETURN_IF_ERROR(check_bool("is_mla", c.is_mla));
  CUBIST_RETURN_IF_ERROR(check_bool("causal", c.causal));
  CUBIST_RETURN_IF_ERROR(check_bool("custom_mask", c.custom_mask));
  CUBIST_RETURN_IF_ERROR(check_bool("packed_qkv", c.packed_qkv));
  CUBIST_RETURN_IF_ERROR(check_bool("varlen_q", c.varlen_q));
  CUBIST_RETURN_IF_ERROR(check_bool("sinks", c.sinks));
  CUBIST_RETURN_IF_ERROR(check_bool("lse", c.lse));
  CUBIST_RETURN_IF_ERROR(check_bool("sparse_dynamic", c.sparse_dynamic));
  CUBIST_RETURN_IF_ERROR(check_bool("uses_shared_paged_kv_idx", c.uses_shared_paged_kv_idx));
  CUBIST_RETURN_IF_ERROR(check_bool("batch_invariant", c.batch_invariant));
  CUBIST_RETURN_IF_ERROR(check_enum("reserved", c.reserved, 0));
  return check_bool("enable_pdl", c.enable_pdl);
}

void fill_strides(const cubist_attention_problem& c, AttentionProblem& p) {
  p.q_stride_tokens = c.q_stride_tokens;
  p.q_stride_heads = c.q_stride_heads;
  p.kv_stride_batch = c.kv_stride_batch;
  p.kv_stride_heads = c.kv_stride_heads;
  p.kv_stride_tokens = c.kv_stride_tokens;
  p.k_stride_tokens = c.k_stride_tokens;
  p.k_stride_heads = c.k_stride_heads;
  p.v_stride_tokens = c.v_stride_tokens;
  p.v_stride_heads = c.v_stride_heads;
  p.lse_stride_tokens = c.lse_stride_tokens;
  p.lse_stride_heads = c.lse_stride_heads;
}

void fill_options(const cubist_attention_problem& c, AttentionProblem& p) {
  p.kv_layout = static_cast<KvLayout>(c.kv_layout);
  p.kv_combined = c.kv_combined != 0;
  p.is_mla = c.is_mla != 0;
  p.window_left = c.window_left;
  p.chunk_size = c.chunk_size;
  p.causal = c.causal != 0;
  p.custom_mask = c.custom_mask != 0;
  p.packed_qkv = c.packed_qkv != 0;
  p.varlen_q = c.varlen_q != 0;
  p.sinks = c.sinks != 0;
  p.lse = c.lse != 0;
  p.sparse_mla_topk = c.sparse_mla_topk;
  p.sparse_dynamic = c.sparse_dynamic != 0;
  p.uses_shared_paged_kv_idx = c.uses_shared_paged_kv_idx != 0;
  p.o_sf_scale = c.o_sf_scale;
  p.o_sf_start_index = c.o_sf_start_index;
  if (c.skip_softmax != 0.0F) p.skip_softmax = c.skip_softmax;
  std::copy_n(c.sage_blocks, p.sage_blocks.size(), p.sage_blocks.begin());
  p.enable_pdl = c.enable_pdl != 0;
  p.batch_invariant = c.batch_invariant != 0;
  p.workspace_size = c.workspace_size;
  p.max_active_clusters = c.max_active_clusters;
}

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

}  // namespace

Result<AttentionProblem> from_c(const cubist_attention_problem& c) {
  CUBIST_RETURN_IF_ERROR(check_fields(c));
  AttentionProblem p;
  p.phase = static_cast<Phase>(c.phase);
  p.dtype_q = static_cast<Dtype>(c.dtype_q);
  p.dtype_k = static_cast<Dtype>(c.dtype_k);
  p.dtype_v = static_cast<Dtype>(c.dtype_v);
  p.dtype_o = static_cast<Dtype>(c.dtype_o);
  p.head_dim_qk = c.head_dim_qk;
  p.head_dim_vo = c.head_dim_vo;
  p.num_q_heads = c.num_q_heads;
  p.num_kv_heads = c.num_kv_heads;
  p.batch = c.batch;
  p.max_q_len = c.max_q_len;
  p.max_kv_len = c.max_kv_len;
  p.sum_seq_q = c.sum_seq_q;
  p.sum_seq_kv = c.sum_seq_kv;
  p.page_size = c.page_size;
  p.max_pages_per_seq = c.max_pages_per_seq;
  p.num_pages = c.num_pages;
  fill_strides(c, p);
  fill_options(c, p);
  return p;
}

Result<DeviceProfile> from_c(const cubist_device& c) {
  DeviceProfile device;
  const char* end = static_cast<const char*>(std::memchr(c.name, 0, sizeof(c.name)));
  if (end == nullptr) {
    return fail(StatusCode::kInvalidArgument, "device.name has no terminating NUL");
  }
  if (c.max_smem_optin == 0) {
    return fail(
        StatusCode::kInvalidArgument,
        "device.max_smem_optin is 0; it must be the bytes of shared memory that a block may "
        "have");
  }
  for (std::size_t size = 0; size < device.max_active_clusters.size(); ++size) {
    if (c.max_active_clusters[size] >= -1) continue;
    return fail(StatusCode::kInvalidArgument,
                "device.max_active_clusters[{}] is {}; it must be at least -1 (-1: unknown)", size,
                c.max_active_clusters[size]);
  }
  device.name = c.name;
  device.sm = c.sm;
  device.num_sms = c.num_sms;
  device.max_smem_optin = c.max_smem_optin;
  std::copy_n(c.max_active_clusters, device.max_active_clusters.size(),
              device.max_active_clusters.begin());
  return device;
}

namespace {

/// A list of the caller's in place of `out`; NULL leaves that, and what set it, as it is.
Status take_list(std::string_view field, const char* const* list, std::uint32_t count,
                 std::vector<std::string>& out, std::string& origin) {
  if (list == nullptr) {
    if (count == 0) return {};
    return fail(StatusCode::kInvalidArgument, "options.{} is NULL and num_{} is {}", field, field,
                count);
  }
  out.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) {
      return fail(StatusCode::kInvalidArgument, "options.{}[{}] is NULL", field, i);
    }
    out.emplace_back(list[i]);
  }
  origin = fmt::format("options.{}", field);
  return {};
}

Result<trust::Settings> trust_from_c(const cubist_runtime_options& c) {
  CUBIST_RETURN_IF_ERROR(
      check_enum("options.manifest_signatures", c.manifest_signatures, CUBIST_POLICY_REFUSE));
  CUBIST_RETURN_IF_ERROR(
      check_enum("options.foreign_store", c.foreign_store, CUBIST_POLICY_REFUSE));
  CUBIST_RETURN_IF_ERROR(check_bool("options.accept_older_serial", c.accept_older_serial));
  CUBIST_ASSIGN_OR_RETURN(trust::Settings settings, trust::settings_from_environment());
  trust::Origins& origins = settings.origins;
  CUBIST_RETURN_IF_ERROR(take_list("trusted_keys", c.trusted_keys, c.num_trusted_keys,
                                   settings.trusted_keys, origins.trusted_keys));
  CUBIST_RETURN_IF_ERROR(take_list("key_statements", c.key_statements, c.num_key_statements,
                                   settings.key_statements, origins.key_statements));
  CUBIST_RETURN_IF_ERROR(take_list("revocations", c.revocations, c.num_revocations,
                                   settings.revocations, origins.revocations));
  const auto policy = [](std::int32_t value) {
    return static_cast<trust::Policy>(value - CUBIST_POLICY_ALLOW);
  };
  if (c.manifest_signatures != CUBIST_POLICY_DEFAULT) {
    settings.manifest_signatures = policy(c.manifest_signatures);
    origins.manifest_signatures = "options.manifest_signatures";
  }
  if (c.foreign_store != CUBIST_POLICY_DEFAULT) {
    settings.foreign_store = policy(c.foreign_store);
    origins.foreign_store = "options.foreign_store";
  }
  settings.accept_older_serial = c.accept_older_serial != 0;
  return settings;
}

}  // namespace

Result<runtime::RuntimeOptions> from_c(const cubist_runtime_options& c) {
  CUBIST_RETURN_IF_ERROR(check_bool("options.offline", c.offline));
  CUBIST_RETURN_IF_ERROR(check_bool("options.strict", c.strict));
  if (c.manifests == nullptr || c.num_manifests == 0) {
    return fail(StatusCode::kInvalidArgument,
                "options.manifests is {} and num_manifests is {}; at least one manifest is needed",
                c.manifests == nullptr ? "NULL" : "given", c.num_manifests);
  }
  runtime::RuntimeOptions options;
  options.offline = c.offline != 0;
  options.strict = c.strict != 0;
  for (std::uint32_t i = 0; i < c.num_manifests; ++i) {
    if (c.manifests[i] == nullptr) {
      return fail(StatusCode::kInvalidArgument, "options.manifests[{}] is NULL", i);
    }
    options.manifests.emplace_back(c.manifests[i]);
  }
  if (c.store_dir != nullptr) options.store_dir = c.store_dir;
  if (c.store_dir != nullptr && options.store_dir.empty()) {
    return fail(StatusCode::kInvalidArgument,
                "options.store_dir is empty; it must be a folder, or NULL for the default");
  }
  if (c.overrides != nullptr && *c.overrides == '\0') {
    return fail(StatusCode::kInvalidArgument,
                "options.overrides is empty; it must be a rule file, or NULL");
  }
  if (c.overrides != nullptr) options.overrides = c.overrides;
  CUBIST_ASSIGN_OR_RETURN(options.trust, trust_from_c(c));
  return options;
}

namespace {

Result<launcher::TensorLayout> layout_from_c(const cubist_tensor_layout& c) {
  CUBIST_RETURN_IF_ERROR(check_struct(&c, "args.o_layout"));
  CUBIST_RETURN_IF_ERROR(check_enum("args.o_layout.dtype", c.dtype, CUBIST_DTYPE_E2M1));
  if (c.reserved != 0) {
    return fail(StatusCode::kInvalidArgument, "args.o_layout.reserved is {}; it must be 0",
                c.reserved);
  }
  if (c.rank < 1 || c.rank > launcher::TensorLayout::kMaxRank) {
    return fail(StatusCode::kInvalidArgument, "args.o_layout.rank is {}; it must be 1..{}", c.rank,
                launcher::TensorLayout::kMaxRank);
  }
  launcher::TensorLayout layout;
  layout.dtype = static_cast<Dtype>(c.dtype);
  layout.rank = c.rank;
  std::copy_n(c.shape, c.rank, layout.shape.begin());
  std::copy_n(c.strides, c.rank, layout.strides.begin());
  return layout;
}

/// What only some kernels know.
Status fill_further(const cubist_attention_args& c, launcher::CallArgs& args) {
  args.cum_seq_lens_kv = address(c.cum_seq_lens_kv);
  args.k_sf = address(c.k_sf);
  args.v_sf = address(c.v_sf);
  args.o_sf = address(c.o_sf);
  args.sliding_pool = address(c.sliding_pool);
  args.topk_lens = address(c.topk_lens);
  std::transform(c.sage_scales, c.sage_scales + args.sage_scales.size(), args.sage_scales.begin(),
                 [](const float* scale) { return address(scale); });
  if (c.o_sf_scale != 0.0F) args.o_sf_scale = c.o_sf_scale;
  if (c.o_sf_start_index != -1) args.o_sf_start_index = c.o_sf_start_index;
  if (c.o_layout == nullptr) return {};
  CUBIST_ASSIGN_OR_RETURN(args.o_layout, layout_from_c(*c.o_layout));
  return {};
}

}  // namespace

Result<launcher::CallArgs> from_c(const cubist_attention_args& c) {
  launcher::CallArgs args;
  args.q = address(c.q);
  args.k = address(c.k);
  args.v = address(c.v);
  args.o = address(c.o);
  args.block_table = address(c.block_table);
  args.seq_lens_kv = address(c.seq_lens_kv);
  args.cum_seq_lens_q = address(c.cum_seq_lens_q);
  args.sinks = address(c.sinks);
  args.lse = address(c.lse);
  args.o_stride_tokens = c.o_stride_tokens;
  args.o_stride_heads = c.o_stride_heads;
  args.workspace = address(c.workspace);
  args.workspace_size = c.workspace_size;
  args.scales = {c.q_scale, c.k_scale, c.v_scale, c.sm_scale, c.o_scale};
  args.bmm1_scale_log2 = address(c.bmm1_scale_log2);
  args.bmm2_scale = address(c.bmm2_scale);
  CUBIST_RETURN_IF_ERROR(fill_further(c, args));
  return args;
}

ScaleArguments from_c(const cubist_scales& c) {
  return {{address(c.q_scale_device), address(c.k_scale_device), address(c.v_scale_device),
           address(c.sm_scale_device), address(c.o_scale_device)},
          {c.q_scale, c.k_scale, c.v_scale, c.sm_scale, c.o_scale},
          address(c.out_bmm1_scale_log2),
          address(c.out_bmm2_scale)};
}

void to_c(const DeviceProfile& device, cubist_device& out) {
  out.sm = device.sm;
  out.num_sms = device.num_sms;
  out.max_smem_optin = device.max_smem_optin;
  std::copy_n(device.max_active_clusters.begin(), device.max_active_clusters.size(),
              out.max_active_clusters);
  std::memset(out.name, 0, sizeof(out.name));
  std::strncpy(out.name, device.name.c_str(), sizeof(out.name) - 1);
}

void to_c(const runtime::WorkspaceNeed& need, cubist_workspace_info& out) {
  out.alignment = need.alignment;
  out.size_bytes = need.size;
  out.zero_bytes = need.zero_size;
}

void to_c(const launcher::TensorLayout& layout, cubist_tensor_layout& out) {
  out.dtype = static_cast<int32_t>(layout.dtype);
  out.rank = layout.rank;
  std::copy_n(layout.shape.begin(), layout.rank, out.shape);
  std::copy_n(layout.strides.begin(), layout.rank, out.strides);
}

}  // namespace cubist::capi
