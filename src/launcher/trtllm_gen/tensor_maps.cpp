#include "launcher/trtllm_gen/tensor_maps.h"

#include <algorithm>
#include <limits>

namespace cubist::trtllm_gen {
namespace {

constexpr std::uint64_t kSwizzleBytes = 128;
constexpr std::int32_t kSfVecSize = 16;  // FP4 elements that share one block scale

/// What the K and V descriptors have in common.
struct KvShape {
  bool paged = false;
  bool fp4 = false;
  bool unpacked_fp4 = false;  ///< widened by the copy engine, for the MMA to read as 8-bit
  bool swizzled = true;
  std::int32_t max_head_dim = 0;
  std::int32_t keys_per_box = 0;
  std::int32_t reshape = 1;
};

std::uint64_t u64(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::uint32_t u32(std::int64_t value) { return static_cast<std::uint32_t>(value); }

TensorMapType map_type(Dtype dtype) {
  if (dtype == Dtype::kFp16) return TensorMapType::kFp16;
  if (dtype == Dtype::kBf16) return TensorMapType::kBf16;
  return TensorMapType::kUint8;
}

std::int64_t elements_per_swizzle_row(Dtype dtype) {
  return static_cast<std::int64_t>(kSwizzleBytes * 8 / dtype_bits(dtype));
}

std::uint64_t stride_bytes(std::int64_t elements, Dtype dtype) {
  return u64(elements) * std::max(dtype_bits(dtype), 8U) / 8;
}

Status choose_swizzle(TensorMapSpec& spec) {
  const std::uint32_t bytes = spec.box[0] * tensor_map_bits(spec.type) / 8;
  if (spec.type == TensorMapType::kPackedFp4 || bytes % 128 == 0) {
    spec.swizzle = TensorMapSwizzle::k128B;
  } else if (bytes % 64 == 0) {
    spec.swizzle = TensorMapSwizzle::k64B;
  } else if (bytes % 32 == 0) {
    spec.swizzle = TensorMapSwizzle::k32B;
  } else {
    return fail(StatusCode::kInvalidArgument,
                "tensor '{}': a box row of {} bytes; it must be a multiple of 32", spec.slot,
                bytes);
  }
  return {};
}

KvShape kv_shape(const AttentionProblem& p, const LaunchPlan& plan) {
  const KernelTraits& traits = plan.record->traits;
  KvShape shape;
  shape.paged = p.phase != Phase::kRagged;
  shape.fp4 = p.dtype_k == Dtype::kE2m1;
  shape.max_head_dim = std::max(p.head_dim_qk, p.head_dim_vo);
  shape.unpacked_fp4 = shape.fp4 && p.dtype_q == Dtype::kE4m3 && shape.max_head_dim >= 128 &&
                       traits.kernel_type == KernelType::kSwapsMmaAbGeneration;
  shape.swizzled = shape.unpacked_fp4 || p.dtype_k == p.dtype_q;
  shape.keys_per_box =
      shape.paged ? std::min<std::int32_t>(p.page_size, traits.tile_kv) : traits.tile_kv;

  // 0.6.8 does not look at the strides; 0.6.13 reshapes only where rows of a head lie side by side.
  const bool rows_adjacent = plan.revision == HeuristicRevision::kTrtllmGenFmha_0_6_8 ||
                             p.kv_stride_tokens == p.head_dim_qk;
  if (shape.paged && p.head_dim_qk == p.head_dim_vo && !shape.swizzled && rows_adjacent) {
    const auto bits = static_cast<std::int32_t>(dtype_bits(p.dtype_k));
    const std::int32_t row_bytes = std::max(1, shape.max_head_dim * bits / 8);
    shape.reshape =
        std::max(1, std::min({128 / shape.max_head_dim, 128 / row_bytes, shape.keys_per_box}));
  }
  return shape;
}

TensorMapSpec describe_q(const AttentionProblem& p, const KernelTraits& traits,
                         std::uint64_t address) {
  const std::int32_t heads_per_kv = p.num_q_heads / p.num_kv_heads;
  const std::int32_t group =
      traits.groups_heads_q ? std::min<std::int32_t>(traits.tile_q, heads_per_kv) : 1;
  TensorMapSpec spec{.slot = "q", .address = address, .type = map_type(p.dtype_q), .rank = 4};
  spec.dims = {u64(p.head_dim_qk), u64(group), u64(p.num_q_heads / group), u64(p.sum_seq_q)};
  spec.strides = {stride_bytes(p.q_stride_heads, p.dtype_q),
                  stride_bytes(group * p.q_stride_heads, p.dtype_q),
                  stride_bytes(p.q_stride_tokens, p.dtype_q)};
  const std::uint32_t row =
      u32(std::min<std::int64_t>(elements_per_swizzle_row(p.dtype_q), p.head_dim_qk));
  if (!traits.groups_heads_q) {
    spec.box = {row, 1, 1, traits.tile_q};
  } else if (traits.groups_tokens_heads_q) {
    spec.box = {row, u32(group), 1, u32(traits.tile_q / group)};
  } else {
    spec.box = {row, traits.tile_q, 1, 1};
  }
  return spec;
}

TensorMapSpec describe_o(const AttentionProblem& p, const KernelTraits& traits,
                         std::uint64_t address) {
  // Typed as Q, also where the output's type differs: the kernels that store another type do not go
  // through this descriptor.
  TensorMapSpec spec{.slot = "o", .address = address, .type = map_type(p.dtype_q), .rank = 5};
  const std::int64_t heads_per_kv = p.num_q_heads / p.num_kv_heads;
  spec.dims = {u64(p.head_dim_vo), u64(p.sum_seq_q), u64(p.num_kv_heads), u64(heads_per_kv), 1};
  spec.strides = {stride_bytes(std::int64_t{p.num_q_heads} * p.head_dim_vo, p.dtype_q),
                  stride_bytes(p.head_dim_vo, p.dtype_q),
                  stride_bytes(std::int64_t{p.num_kv_heads} * p.head_dim_vo, p.dtype_q), 0};
  spec.box = {u32(std::min<std::int64_t>(elements_per_swizzle_row(p.dtype_q), p.head_dim_qk)),
              traits.tile_q, 1, 1, 1};
  return spec;
}

/// Pages a descriptor spans. K and V in two tensors count as halves of one pool of pages.
std::uint64_t pool_pages(const AttentionProblem& p) {
  return u64(p.num_pages) * (p.is_mla ? 1 : 2);
}

/// Ragged tensors have no pages; the published runtime passes the tensor's element count as an int.
std::int64_t ragged_batch_stride(std::int64_t tokens, std::int64_t heads, std::int64_t head_dim) {
  const auto wrapped =
      static_cast<std::int32_t>(static_cast<std::uint32_t>(tokens * heads * head_dim));
  return std::max(wrapped, 0);
}

TensorMapSpec describe_kv(const AttentionProblem& p, const KvShape& shape, bool is_k,
                          std::uint64_t address) {
  const Dtype dtype = is_k ? p.dtype_k : p.dtype_v;
  const std::int64_t packed = shape.fp4 ? 2 : 1;
  const std::int64_t width = shape.unpacked_fp4 ? 1 : packed;
  const std::int64_t head_dim =
      shape.paged ? shape.max_head_dim : (is_k ? p.head_dim_qk : p.head_dim_vo);
  TensorMapSpec spec{
      .slot = is_k ? "k" : "v", .address = address, .type = map_type(dtype), .rank = 4};
  if (shape.unpacked_fp4) spec.type = TensorMapType::kPackedFp4;

  std::int64_t tokens = p.kv_stride_tokens;
  std::int64_t heads = p.kv_stride_heads;
  std::int64_t batch = p.kv_stride_batch;
  if (!shape.paged) {
    tokens = is_k ? p.k_stride_tokens : p.v_stride_tokens;
    heads = is_k ? p.k_stride_heads : p.v_stride_heads;
    batch = ragged_batch_stride(p.sum_seq_kv, p.num_kv_heads, head_dim);
  }
  const std::int64_t keys = shape.paged ? p.page_size : p.sum_seq_kv;
  spec.dims = {u64(head_dim / width * shape.reshape), u64(keys / shape.reshape),
               u64(p.num_kv_heads), shape.paged ? pool_pages(p) : 1};
  spec.strides = {stride_bytes(tokens / packed * shape.reshape, dtype),
                  stride_bytes(heads / packed, dtype), stride_bytes(batch / packed, dtype)};

  std::int64_t row =
      std::min<std::int64_t>({elements_per_swizzle_row(dtype),
                              shape.paged ? shape.max_head_dim : shape.max_head_dim, 128});
  row = row / width * shape.reshape;
  if (!is_k && p.dtype_k != p.dtype_v && !shape.unpacked_fp4) {
    row = std::min<std::int64_t>({elements_per_swizzle_row(p.dtype_k), shape.max_head_dim, 128}) /
          width * dtype_bits(p.dtype_k) / dtype_bits(p.dtype_v);
  }
  spec.box = {u32(row), u32(shape.keys_per_box / shape.reshape), 1, 1};
  return spec;
}

/// Token-sparse K: one row a token, addressed by index.
TensorMapSpec describe_sparse_k(const AttentionProblem& p, std::string_view slot,
                                std::uint64_t address) {
  TensorMapSpec spec{.slot = slot, .address = address, .type = map_type(p.dtype_k), .rank = 2};
  spec.dims = {u64(p.head_dim_qk), u64(std::numeric_limits<std::int32_t>::max())};
  spec.strides = {stride_bytes(p.head_dim_qk, p.dtype_k)};
  spec.box = {
      u32(std::min<std::int64_t>({elements_per_swizzle_row(p.dtype_k), p.head_dim_qk, 128})), 1};
  return spec;
}

TensorMapSpec describe_kv_scales(const AttentionProblem& p, const KvShape& shape,
                                 std::string_view slot, std::uint64_t address) {
  const std::int32_t scales = shape.max_head_dim / kSfVecSize;  // a token's scales of one head
  const std::int32_t reshape = std::min(128 / scales, shape.keys_per_box);
  // The scale tensor is dense [pages, heads, tokens, scales], whatever the strides of K and V.
  const std::int64_t head_stride = std::int64_t{p.page_size} * scales;
  const std::int64_t page_stride = p.num_kv_heads * head_stride;
  TensorMapSpec spec{.slot = slot, .address = address, .type = TensorMapType::kUint8, .rank = 4};
  spec.dims = {u64(scales * reshape), u64(p.page_size / reshape), u64(p.num_kv_heads),
               pool_pages(p)};
  spec.strides = {u64(scales * reshape), u64(head_stride), u64(page_stride)};
  spec.box = {u32(scales * reshape), u32(shape.keys_per_box / reshape), 1, 1};
  return spec;
}

class Collector {
 public:
  Status add(TensorMapSpec spec, bool swizzled) {
    if (swizzled) CUBIST_RETURN_IF_ERROR(choose_swizzle(spec));
    maps_.maps[maps_.count++] = spec;
    return {};
  }
  const TensorMaps& maps() const { return maps_; }

 private:
  TensorMaps maps_;
};

}  // namespace

std::int32_t kv_reshape_factor(const AttentionProblem& problem, const LaunchPlan& plan) {
  return kv_shape(problem, plan).reshape;
}

Result<TensorMaps> describe_tensor_maps(const AttentionProblem& problem, const LaunchPlan& plan,
                                        const Addresses& addresses) {
  const KernelTraits& traits = plan.record->traits;
  const KvShape shape = kv_shape(problem, plan);
  const bool sparse = traits.sparse_type != SparseType::kNone;
  Collector collector;
  CUBIST_RETURN_IF_ERROR(collector.add(describe_q(problem, traits, addresses.q), true));
  TensorMapSpec v = describe_kv(problem, shape, false, addresses.v);
  if (sparse) {
    v.box[1] = 1;
    CUBIST_RETURN_IF_ERROR(
        collector.add(describe_sparse_k(problem, "k", addresses.k), shape.swizzled));
    if (addresses.sliding_pool != 0) {
      CUBIST_RETURN_IF_ERROR(collector.add(
          describe_sparse_k(problem, "k_swa_pool", addresses.sliding_pool), shape.swizzled));
    }
  } else {
    CUBIST_RETURN_IF_ERROR(
        collector.add(describe_kv(problem, shape, true, addresses.k), shape.swizzled));
  }
  CUBIST_RETURN_IF_ERROR(collector.add(v, shape.swizzled));
  CUBIST_RETURN_IF_ERROR(collector.add(describe_o(problem, traits, addresses.o), true));
  if (shape.fp4) {
    CUBIST_RETURN_IF_ERROR(
        collector.add(describe_kv_scales(problem, shape, "k_sf", addresses.k_sf), false));
    CUBIST_RETURN_IF_ERROR(
        collector.add(describe_kv_scales(problem, shape, "v_sf", addresses.v_sf), false));
  }
  return collector.maps();
}

}  // namespace cubist::trtllm_gen
