#include "selector/validate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string_view>

#include "model/dtype.h"
#include "model/launch_limits.h"

namespace cubist::selector {
namespace {

constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();
// kMaxGridYz bounds heads and sequences: grid Y counts head CTAs and grid Z sequences.
// The published kernels' own limits on head sizes.
constexpr std::int64_t kMinHeadDim = 32;
constexpr std::int64_t kMaxHeadDim = 1024;
// Bits from one row to the next in a tensor map: below 2^40 bytes. Source: cuTensorMapEncodeTiled.
constexpr std::int64_t kMaxStrideBits = (std::int64_t{1} << 43) - 1;

// Selection checks every problem it is given, so a good one must cost nanoseconds: plain
// comparisons in line, and everything about the message out of it.

constexpr bool outside(std::int64_t value, std::int64_t low, std::int64_t high) {
  return value < low || value > high;
}

constexpr bool is_power_of_two(std::int64_t value) {
  return value > 0 && (value & (value - 1)) == 0;
}

[[gnu::cold, gnu::noinline]] tl::unexpected<Error> out_of_range(std::string_view field,
                                                                std::int64_t value,
                                                                std::int64_t low,
                                                                std::int64_t high) {
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be {}..{}", field, value, low, high);
}

[[gnu::cold, gnu::noinline]] tl::unexpected<Error> unknown_value(std::string_view field,
                                                                 unsigned value) {
  return fail(StatusCode::kInvalidArgument, "{} has the unknown value {}", field, value);
}

[[gnu::cold, gnu::noinline]] tl::unexpected<Error> not_finite(std::string_view field,
                                                              double value) {
  return fail(StatusCode::kInvalidArgument, "{} is {}; it must be finite", field, value);
}

#define CHECK_RANGE(field, low, high) \
  if (outside(p.field, low, high)) return out_of_range(#field, p.field, low, high)
#define CHECK_RANGE_OR_DERIVED(field, low, high) \
  if (p.field != -1 && outside(p.field, low, high)) return out_of_range(#field, p.field, low, high)
#define CHECK_ENUM(field, last) \
  if (p.field > last) return unknown_value(#field, static_cast<unsigned>(p.field))
#define CHECK_FINITE(field, value) \
  if (!std::isfinite(value)) return not_finite(field, static_cast<double>(value))

Status check_enums(const AttentionProblem& p) {
  CHECK_ENUM(phase, Phase::kRagged);
  CHECK_ENUM(kv_layout, KvLayout::kNhd);
  CHECK_ENUM(dtype_q, Dtype::kE2m1);
  CHECK_ENUM(dtype_k, Dtype::kE2m1);
  CHECK_ENUM(dtype_v, Dtype::kE2m1);
  CHECK_ENUM(dtype_o, Dtype::kE2m1);
  return {};
}

Status check_heads(const AttentionProblem& p) {
  CHECK_RANGE(num_q_heads, 1, kMaxGridYz);
  CHECK_RANGE(num_kv_heads, 1, kMaxGridYz);
  CHECK_RANGE(head_dim_qk, kMinHeadDim, kMaxHeadDim);
  CHECK_RANGE_OR_DERIVED(head_dim_vo, kMinHeadDim, kMaxHeadDim);
  if (p.num_q_heads % p.num_kv_heads != 0) {
    return fail(StatusCode::kInvalidArgument,
                "num_q_heads is {}; it must be a multiple of num_kv_heads, {}", p.num_q_heads,
                p.num_kv_heads);
  }
  return {};
}

Status check_lengths(const AttentionProblem& p) {
  CHECK_RANGE(batch, 1, kMaxGridYz);
  CHECK_RANGE(max_q_len, 1, kInt32Max);
  CHECK_RANGE(max_kv_len, 1, kInt32Max);
  const std::int64_t most_q = std::int64_t{p.batch} * p.max_q_len;
  if (most_q > kInt32Max) {
    return fail(StatusCode::kInvalidArgument,
                "batch * max_q_len is {}; query tokens are counted in 32 bits, so at most {}",
                most_q, kInt32Max);
  }
  CHECK_RANGE_OR_DERIVED(sum_seq_q, 1, most_q);
  const std::int64_t most_kv = std::int64_t{p.batch} * p.max_kv_len;
  CHECK_RANGE_OR_DERIVED(sum_seq_kv, 0, most_kv);
  const std::int64_t sum_kv = p.sum_seq_kv != -1 ? p.sum_seq_kv : most_kv;
  if (p.phase == Phase::kRagged && outside(sum_kv, 1, kInt32Max)) {
    return fail(StatusCode::kInvalidArgument,
                "sum_seq_kv is {}; ragged KV has at least one token, and they are counted in 32 "
                "bits, so at most {}",
                sum_kv, kInt32Max);
  }
  return {};
}

/// Log-sum-exp is one value per query token and head, counted in 32 bits.
Status check_lse(const AttentionProblem& p) {
  if (!p.lse) return {};
  const std::int64_t tokens = p.sum_seq_q != -1 ? p.sum_seq_q : std::int64_t{p.batch} * p.max_q_len;
  if (tokens * p.num_q_heads <= kInt32Max) return {};
  return fail(StatusCode::kInvalidArgument,
              "sum_seq_q * num_q_heads is {} with lse; it must be at most {}: ask for fewer tokens "
              "at once",
              tokens * p.num_q_heads, kInt32Max);
}

Status check_pages(const AttentionProblem& p) {
  if (p.phase == Phase::kRagged) return {};
  if (!is_power_of_two(p.page_size)) {
    return fail(StatusCode::kInvalidArgument, "page_size is {}; it must be a power of two",
                p.page_size);
  }
  CHECK_RANGE_OR_DERIVED(max_pages_per_seq, 1, kInt32Max);
  // K and V each count their pages, in 32 bits together.
  CHECK_RANGE_OR_DERIVED(num_pages, 1, kInt32Max / 2);
  // What a page holds of K or V is the stride from page to page, where no other is given.
  const std::int64_t page_elements =
      std::int64_t{p.page_size} * p.num_kv_heads * std::max(p.head_dim_qk, p.head_dim_vo);
  if (page_elements > kMaxStrideBits / 64 && p.kv_stride_batch == -1 &&
      page_elements * dtype_bits(p.dtype_k) > kMaxStrideBits / 2) {
    return fail(StatusCode::kInvalidArgument,
                "page_size * num_kv_heads * head_dim is {} elements of {}; a page must hold less "
                "than 2^39 bytes",
                page_elements, to_string(p.dtype_k));
  }
  const int page_log2 = std::countr_zero(static_cast<std::uint32_t>(p.page_size));
  const std::int64_t per_seq = p.max_pages_per_seq != -1
                                   ? std::int64_t{p.max_pages_per_seq}
                                   : (std::int64_t{p.max_kv_len} + p.page_size - 1) >> page_log2;
  const std::int64_t table_entries = per_seq * p.batch;
  if (p.num_pages == -1 && table_entries > kInt32Max / 2) {
    return fail(StatusCode::kInvalidArgument,
                "num_pages would be batch * max_pages_per_seq, {}; it must be at most {}: give "
                "num_pages, or larger pages",
                table_entries, kInt32Max / 2);
  }
  if (table_entries > kInt32Max) {
    return fail(StatusCode::kInvalidArgument,
                "batch * max_pages_per_seq is {}; a block table has at most {} entries: take "
                "larger pages or a smaller batch",
                table_entries, kInt32Max);
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
  CHECK_RANGE(window_left, -1, kInt32Max - 1);
  if (p.chunk_size == 0) return {};
  if (!is_power_of_two(p.chunk_size)) {
    return fail(StatusCode::kInvalidArgument,
                "chunk_size is {}; it must be 0 (off) or a power of two", p.chunk_size);
  }
  if (p.window_left != -1) {
    return fail(StatusCode::kInvalidArgument,
                "chunk_size is {} and window_left is {}; a call has a window or chunks, not both",
                p.chunk_size, p.window_left);
  }
  if (!p.causal && p.phase != Phase::kDecode) {
    return fail(StatusCode::kInvalidArgument,
                "chunk_size is {} and causal is false; chunked attention is causal", p.chunk_size);
  }
  return {};
}

Status check_sparse(const AttentionProblem& p) {
  CHECK_RANGE(sparse_mla_topk, 0, kInt32Max);
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
  const std::int64_t tokens = std::int64_t{p.batch} * p.max_q_len;
  if (!p.varlen_q && p.sum_seq_q != -1 && p.sum_seq_q != tokens) {
    return fail(StatusCode::kInvalidArgument,
                "sum_seq_q is {} with sparse_dynamic; without varlen_q it must be batch * "
                "max_q_len, {}",
                p.sum_seq_q, tokens);
  }
  return {};
}

Status check_sage(const AttentionProblem& p) {
  std::int32_t any = 0;
  for (const std::int32_t block : p.sage_blocks) any |= block;
  if (any == 0) return {};
  for (const std::int32_t block : p.sage_blocks) {
    if (block != 0 && (!is_power_of_two(block) || block > 128)) {
      return fail(StatusCode::kInvalidArgument,
                  "sage_blocks holds {}; a block is 0 (off) or a power of two up to 128", block);
    }
  }
  if (p.phase != Phase::kRagged) {
    return fail(StatusCode::kInvalidArgument,
                "sage_blocks are set with phase {}; only phase ragged takes SageAttention scales",
                to_string(p.phase));
  }
  return {};
}

/// A tensor map takes strides below 2^40 bytes, in units of 16 bytes.
bool is_bad_stride(std::int64_t elements, Dtype dtype) {
  if (elements == -1) return false;
  if (outside(elements, 0, kMaxStrideBits)) return true;
  const std::int64_t bits = elements * dtype_bits(dtype);
  return bits > kMaxStrideBits || (bits & 127) != 0;
}

[[gnu::cold, gnu::noinline]] tl::unexpected<Error> bad_stride(std::string_view field,
                                                              std::int64_t elements, Dtype dtype) {
  return fail(StatusCode::kInvalidArgument,
              "{} is {} elements of {}; tensor maps need a multiple of 16 bytes below 2^40 bytes",
              field, elements, to_string(dtype));
}

#define CHECK_STRIDE(field, dtype) \
  if (is_bad_stride(p.field, p.dtype)) return bad_stride(#field, p.field, p.dtype)

Status check_strides(const AttentionProblem& p) {
  CHECK_STRIDE(q_stride_tokens, dtype_q);
  CHECK_STRIDE(q_stride_heads, dtype_q);
  CHECK_STRIDE(kv_stride_batch, dtype_k);
  CHECK_STRIDE(kv_stride_heads, dtype_k);
  CHECK_STRIDE(kv_stride_tokens, dtype_k);
  CHECK_STRIDE(k_stride_tokens, dtype_k);
  CHECK_STRIDE(k_stride_heads, dtype_k);
  CHECK_STRIDE(v_stride_tokens, dtype_v);
  CHECK_STRIDE(v_stride_heads, dtype_v);
  CHECK_RANGE(lse_stride_tokens, -1, kInt32Max);
  CHECK_RANGE(lse_stride_heads, -1, kInt32Max);
  return {};
}

Status check_scales(const AttentionProblem& p) {
  if (!p.bmm1_scale.on_device) CHECK_FINITE("bmm1_scale", p.bmm1_scale.value);
  if (!p.bmm2_scale.on_device) CHECK_FINITE("bmm2_scale", p.bmm2_scale.value);
  CHECK_FINITE("o_sf_scale", p.o_sf_scale);
  CHECK_RANGE(o_sf_start_index, 0, kInt32Max);
  if (p.skip_softmax && !(*p.skip_softmax >= 0.0F && std::isfinite(*p.skip_softmax))) {
    return fail(StatusCode::kInvalidArgument,
                "skip_softmax is {}; it must be a finite number of at least 0 (0: off)",
                static_cast<double>(*p.skip_softmax));
  }
  CHECK_RANGE(workspace_size, 0, std::numeric_limits<std::int64_t>::max());
  CHECK_RANGE(max_active_clusters, -1, kInt32Max);
  return {};
}

#undef CHECK_RANGE
#undef CHECK_RANGE_OR_DERIVED
#undef CHECK_ENUM
#undef CHECK_FINITE
#undef CHECK_STRIDE

}  // namespace

Status validate_problem(const AttentionProblem& problem) {
  CUBIST_RETURN_IF_ERROR(check_enums(problem));
  CUBIST_RETURN_IF_ERROR(check_heads(problem));
  CUBIST_RETURN_IF_ERROR(check_lengths(problem));
  CUBIST_RETURN_IF_ERROR(check_lse(problem));
  CUBIST_RETURN_IF_ERROR(check_pages(problem));
  CUBIST_RETURN_IF_ERROR(check_mask(problem));
  CUBIST_RETURN_IF_ERROR(check_sparse(problem));
  CUBIST_RETURN_IF_ERROR(check_sage(problem));
  CUBIST_RETURN_IF_ERROR(check_strides(problem));
  return check_scales(problem);
}

Status validate_device(const DeviceProfile& device) {
  if (outside(device.sm, 10, 999)) return out_of_range("sm", device.sm, 10, 999);
  if (outside(device.num_sms, 1, kMaxGridYz)) {
    return out_of_range("num_sms", device.num_sms, 1, kMaxGridYz);
  }
  return {};
}

}  // namespace cubist::selector
