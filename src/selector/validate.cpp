#include "selector/validate.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "model/dtype.h"

namespace cubist::selector {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
// Grid Y counts head CTAs and grid Z sequences. Source: CUDA C++ Programming Guide, technical
// specifications per compute capability: 65,535 for both.
constexpr std::int64_t kMaxGridYz = 65535;
// The published kernels' own limits on head sizes.
constexpr std::int64_t kMinHeadDim = 32;
constexpr std::int64_t kMaxHeadDim = 1024;
// Bytes from one row to the next in a tensor map: below 2^40. Source: cuTensorMapEncodeTiled.
constexpr std::int64_t kMaxStrideBytes = (std::int64_t{1} << 40) - 1;

Status in_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be {}..{}", field, value, low, high);
}

bool is_power_of_two(std::int64_t value) {
  return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
}

Status valid_enum(std::string_view field, unsigned value, unsigned last) {
  if (value <= last) return {};
  return fail(StatusCode::kInvalidArgument, "{} has the unknown value {}", field, value);
}

Status check_enums(const AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(
      valid_enum("phase", static_cast<unsigned>(p.phase), static_cast<unsigned>(Phase::kRagged)));
  CUBIST_RETURN_IF_ERROR(valid_enum("kv_layout", static_cast<unsigned>(p.kv_layout),
                                    static_cast<unsigned>(KvLayout::kNhd)));
  constexpr auto kLast = static_cast<unsigned>(Dtype::kE2m1);
  CUBIST_RETURN_IF_ERROR(valid_enum("dtype_q", static_cast<unsigned>(p.dtype_q), kLast));
  CUBIST_RETURN_IF_ERROR(valid_enum("dtype_k", static_cast<unsigned>(p.dtype_k), kLast));
  CUBIST_RETURN_IF_ERROR(valid_enum("dtype_v", static_cast<unsigned>(p.dtype_v), kLast));
  return valid_enum("dtype_o", static_cast<unsigned>(p.dtype_o), kLast);
}

Status check_heads(const AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(in_range("num_q_heads", p.num_q_heads, 1, kMaxGridYz));
  CUBIST_RETURN_IF_ERROR(in_range("num_kv_heads", p.num_kv_heads, 1, kMaxGridYz));
  if (p.num_q_heads % p.num_kv_heads != 0) {
    return fail(StatusCode::kInvalidArgument,
                "num_q_heads is {}; it must be a multiple of num_kv_heads, {}", p.num_q_heads,
                p.num_kv_heads);
  }
  CUBIST_RETURN_IF_ERROR(in_range("head_dim_qk", p.head_dim_qk, kMinHeadDim, kMaxHeadDim));
  if (p.head_dim_vo == -1) return {};
  return in_range("head_dim_vo", p.head_dim_vo, kMinHeadDim, kMaxHeadDim);
}

Status check_lengths(const AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(in_range("batch", p.batch, 1, kMaxGridYz));
  CUBIST_RETURN_IF_ERROR(in_range("max_q_len", p.max_q_len, 1, kInt32Max));
  CUBIST_RETURN_IF_ERROR(in_range("max_kv_len", p.max_kv_len, 1, kInt32Max));
  const std::int64_t most_q = std::int64_t{p.batch} * p.max_q_len;
  if (most_q > kInt32Max) {
    return fail(StatusCode::kInvalidArgument,
                "batch * max_q_len is {}; query tokens are counted in 32 bits, so at most {}",
                most_q, kInt32Max);
  }
  if (p.sum_seq_q != -1) CUBIST_RETURN_IF_ERROR(in_range("sum_seq_q", p.sum_seq_q, 1, most_q));
  const std::int64_t most_kv = std::int64_t{p.batch} * p.max_kv_len;
  if (p.sum_seq_kv != -1) CUBIST_RETURN_IF_ERROR(in_range("sum_seq_kv", p.sum_seq_kv, 0, most_kv));
  const std::int64_t sum_kv = p.sum_seq_kv != -1 ? p.sum_seq_kv : most_kv;
  if (p.phase == Phase::kRagged && sum_kv > kInt32Max) {
    return fail(StatusCode::kInvalidArgument,
                "sum_seq_kv is {}; KV tokens are counted in 32 bits, so at most {}", sum_kv,
                kInt32Max);
  }
  return {};
}

Status check_pages(const AttentionProblem& p) {
  if (p.phase == Phase::kRagged) return {};
  if (!is_power_of_two(p.page_size)) {
    return fail(StatusCode::kInvalidArgument, "page_size is {}; it must be a power of two",
                p.page_size);
  }
  if (p.max_pages_per_seq != -1) {
    CUBIST_RETURN_IF_ERROR(in_range("max_pages_per_seq", p.max_pages_per_seq, 1, kInt32Max));
  }
  const std::int64_t per_seq = p.max_pages_per_seq != -1
                                   ? p.max_pages_per_seq
                                   : (std::int64_t{p.max_kv_len} + p.page_size - 1) / p.page_size;
  // K and V each count their pages, in 32 bits together.
  if (p.num_pages != -1) return in_range("num_pages", p.num_pages, 1, kInt32Max / 2);
  if (per_seq * p.batch > kInt32Max / 2) {
    return fail(StatusCode::kInvalidArgument,
                "num_pages would be batch * max_pages_per_seq, {}; it must be at most {}: give "
                "num_pages, or larger pages",
                per_seq * p.batch, kInt32Max / 2);
  }
  return {};
}

Status check_mask(const AttentionProblem& p) {
  if (p.custom_mask) {
    return fail(StatusCode::kUnsupported,
                "custom_mask is true; no kernel is asked for custom masks: use causal, dense or a "
                "window");
  }
  if (p.packed_qkv) {
    return fail(StatusCode::kUnsupported,
                "packed_qkv is true; no kernel is asked for packed QKV: pass Q, K and V apart "
                "(phase ragged) or a paged KV cache");
  }
  CUBIST_RETURN_IF_ERROR(in_range("window_left", p.window_left, -1, kInt32Max - 1));
  if (p.chunk_size != 0 && !is_power_of_two(p.chunk_size)) {
    return fail(StatusCode::kInvalidArgument,
                "chunk_size is {}; it must be 0 (off) or a power of two", p.chunk_size);
  }
  if (p.chunk_size != 0 && p.window_left != -1) {
    return fail(StatusCode::kInvalidArgument,
                "chunk_size is {} and window_left is {}; a call has a window or chunks, not both",
                p.chunk_size, p.window_left);
  }
  return {};
}

Status check_sparse(const AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(in_range("sparse_mla_topk", p.sparse_mla_topk, 0, kInt32Max));
  if (p.phase == Phase::kDecode && p.sparse_mla_topk % 4 != 0) {
    return fail(StatusCode::kInvalidArgument,
                "sparse_mla_topk is {}; it must be a multiple of 4 (0: not sparse)",
                p.sparse_mla_topk);
  }
  if (!p.sparse_dynamic) return {};
  if (p.phase != Phase::kDecode || p.sparse_mla_topk == 0) {
    return fail(StatusCode::kInvalidArgument,
                "sparse_dynamic is true; per-token top-k lengths need phase decode and a "
                "sparse_mla_topk above 0 (phase {}, sparse_mla_topk {})",
                to_string(p.phase), p.sparse_mla_topk);
  }
  if (p.num_kv_heads != 1) {
    return fail(StatusCode::kInvalidArgument,
                "num_kv_heads is {}; with sparse_dynamic there is one KV head", p.num_kv_heads);
  }
  return {};
}

Status check_sage(const AttentionProblem& p) {
  bool any = false;
  for (const std::int32_t block : p.sage_blocks) {
    if (block != 0 && (!is_power_of_two(block) || block > 128)) {
      return fail(StatusCode::kInvalidArgument,
                  "sage_blocks holds {}; a block is 0 (off) or a power of two up to 128", block);
    }
    any = any || block != 0;
  }
  if (any && p.phase != Phase::kRagged) {
    return fail(StatusCode::kInvalidArgument,
                "sage_blocks are set with phase {}; only phase ragged takes SageAttention scales",
                to_string(p.phase));
  }
  return {};
}

/// A tensor map takes strides in units of 16 bytes.
Status check_stride(std::string_view field, std::int64_t elements, Dtype dtype) {
  if (elements == -1) return {};
  const std::int64_t bits = dtype_bits(dtype);
  CUBIST_RETURN_IF_ERROR(in_range(field, elements, 0, kMaxStrideBytes * 8 / bits));
  if (elements * bits % 128 == 0) return {};
  return fail(StatusCode::kInvalidArgument,
              "{} is {} elements of {}; tensor maps need a multiple of 16 bytes", field, elements,
              to_string(dtype));
}

Status check_strides(const AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(check_stride("q_stride_tokens", p.q_stride_tokens, p.dtype_q));
  CUBIST_RETURN_IF_ERROR(check_stride("q_stride_heads", p.q_stride_heads, p.dtype_q));
  CUBIST_RETURN_IF_ERROR(check_stride("kv_stride_batch", p.kv_stride_batch, p.dtype_k));
  CUBIST_RETURN_IF_ERROR(check_stride("kv_stride_heads", p.kv_stride_heads, p.dtype_k));
  CUBIST_RETURN_IF_ERROR(check_stride("kv_stride_tokens", p.kv_stride_tokens, p.dtype_k));
  CUBIST_RETURN_IF_ERROR(check_stride("k_stride_tokens", p.k_stride_tokens, p.dtype_k));
  CUBIST_RETURN_IF_ERROR(check_stride("k_stride_heads", p.k_stride_heads, p.dtype_k));
  CUBIST_RETURN_IF_ERROR(check_stride("v_stride_tokens", p.v_stride_tokens, p.dtype_v));
  CUBIST_RETURN_IF_ERROR(check_stride("v_stride_heads", p.v_stride_heads, p.dtype_v));
  CUBIST_RETURN_IF_ERROR(in_range("lse_stride_tokens", p.lse_stride_tokens, -1, kInt32Max));
  return in_range("lse_stride_heads", p.lse_stride_heads, -1, kInt32Max);
}

Status check_scales(const AttentionProblem& p) {
  const auto finite = [](std::string_view field, double value) -> Status {
    if (std::isfinite(value)) return {};
    return fail(StatusCode::kInvalidArgument, "{} is {}; it must be finite", field, value);
  };
  if (!p.bmm1_scale.on_device) CUBIST_RETURN_IF_ERROR(finite("bmm1_scale", p.bmm1_scale.value));
  if (!p.bmm2_scale.on_device) CUBIST_RETURN_IF_ERROR(finite("bmm2_scale", p.bmm2_scale.value));
  CUBIST_RETURN_IF_ERROR(finite("o_sf_scale", static_cast<double>(p.o_sf_scale)));
  CUBIST_RETURN_IF_ERROR(in_range("o_sf_start_index", p.o_sf_start_index, 0, kInt32Max));
  if (p.skip_softmax && !(*p.skip_softmax >= 0.0F && std::isfinite(*p.skip_softmax))) {
    return fail(StatusCode::kInvalidArgument,
                "skip_softmax is {}; it must be a finite number of at least 0 (0: off)",
                static_cast<double>(*p.skip_softmax));
  }
  return {};
}

}  // namespace

Status validate_problem(const AttentionProblem& p) {
  CUBIST_RETURN_IF_ERROR(check_enums(p));
  CUBIST_RETURN_IF_ERROR(check_heads(p));
  CUBIST_RETURN_IF_ERROR(check_lengths(p));
  CUBIST_RETURN_IF_ERROR(check_pages(p));
  CUBIST_RETURN_IF_ERROR(check_mask(p));
  CUBIST_RETURN_IF_ERROR(check_sparse(p));
  CUBIST_RETURN_IF_ERROR(check_sage(p));
  CUBIST_RETURN_IF_ERROR(check_strides(p));
  CUBIST_RETURN_IF_ERROR(check_scales(p));
  CUBIST_RETURN_IF_ERROR(
      in_range("workspace_size", p.workspace_size, 0, std::numeric_limits<std::int64_t>::max()));
  return in_range("max_active_clusters", p.max_active_clusters, -1, kInt32Max);
}

Status validate_device(const DeviceProfile& device) {
  CUBIST_RETURN_IF_ERROR(in_range("sm", device.sm, 10, 999));
  CUBIST_RETURN_IF_ERROR(in_range("num_sms", device.num_sms, 1, 65535));
  for (const std::int32_t answer : device.max_active_clusters) {
    CUBIST_RETURN_IF_ERROR(in_range("the device's max_active_clusters", answer, -1, kInt32Max));
  }
  return {};
}

}  // namespace cubist::selector
