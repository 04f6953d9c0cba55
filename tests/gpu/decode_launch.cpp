#include "gpu/decode_launch.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "launcher/tensor_map_spec.h"

namespace cubist::test {

DecodeLaunch::DecodeLaunch(const Device& device, const DecodeVariant& variant,
                           const DecodeCase& made, const DecodeTensors& tensors)
    : device_(device) {
  set_geometry(made);
  set_strides(made);
  set_tensors(made, tensors);
  if (!variant.persistent) set_static_fields(variant, made, tensors);
  std::size_t tiles = static_cast<std::size_t>(params_.num_ctas_q) * grid_[1] * grid_[2];
  std::size_t rows = tiles * static_cast<std::size_t>(made.num_ctas_kv * variant.tile_q);
  if (variant.persistent) {
    set_persistent_geometry(made);
    encode_maps(variant, made);
    // Two parts a CTA; eight floats more a row than head_dim (MLA: than each half of it), up to
    // eight counters a sequence and column.
    rows = static_cast<std::size_t>(grid_[0]) * grid_[1] * 2 *
           static_cast<std::size_t>(variant.tile_q);
    tiles = static_cast<std::size_t>(made.problem.batch()) * grid_[0] * 8;
  }
  partial_o_ = std::make_unique<DeviceBuffer>(
      device, rows * static_cast<std::size_t>(variant.head_dim_vo + 16) * sizeof(float));
  partial_stats_ = std::make_unique<DeviceBuffer>(device, rows * 2 * sizeof(float));
  counters_ = std::make_unique<DeviceBuffer>(device, tiles * sizeof(std::int32_t));
  params_.partial_o = partial_o_->as<float>();
  params_.partial_stats = partial_stats_->as<float>();
  params_.counters = counters_->as<std::int32_t>();
  counters_->fill(0);
  poison();
}

void DecodeLaunch::set_geometry(const DecodeCase& made) {
  const DecodeProblem& problem = made.problem;
  params_.batch = problem.batch();
  params_.max_q_len = made.max_q_len;
  params_.num_q_heads = problem.num_q_heads;
  params_.num_kv_heads = problem.num_kv_heads;
  params_.num_heads_per_kv = problem.num_q_heads / problem.num_kv_heads;
  params_.num_tokens_per_cta_q = made.num_tokens_per_cta_q;
  params_.num_heads_per_cta = made.num_heads_per_cta;
  params_.num_ctas_q = (made.max_q_len + made.num_tokens_per_cta_q - 1) / made.num_tokens_per_cta_q;
  params_.num_ctas_kv = made.num_ctas_kv;
  const int head_tiles =
      (params_.num_heads_per_kv + made.num_heads_per_cta - 1) / made.num_heads_per_cta;
  grid_ = {static_cast<unsigned>(params_.num_ctas_q * params_.num_ctas_kv),
           static_cast<unsigned>(problem.num_kv_heads * head_tiles),
           static_cast<unsigned>(problem.batch())};
}

void DecodeLaunch::set_persistent_geometry(const DecodeCase& made) {
  const auto q_ctas = static_cast<unsigned>(params_.num_ctas_q);
  grid_ = {q_ctas * grid_[1], static_cast<unsigned>(made.num_ctas_kv), 1};
  // The pool is written long before: everything but the new tokens may be read early.
  params_.prefetch_kv = made.pdl ? 1 : 0;
}

/// kernels/decode/README.md, "Tensor maps".
void DecodeLaunch::encode_maps(const DecodeVariant& variant, const DecodeCase& made) {
  using namespace cuda;  // NOLINT(google-build-using-namespace)
  const DecodeProblem& problem = made.problem;
  const bool is_e4m3 = variant.dtype_kv == Dtype::kE4m3;
  const std::uint32_t bytes = is_e4m3 ? 1 : 2;
  const auto head_dim = static_cast<std::uint32_t>(variant.head_dim);
  const std::uint32_t elements = std::min(head_dim, 128 / bytes);  // of a panel
  const std::uint32_t panels = head_dim / elements;
  const auto page_size = static_cast<std::uint32_t>(problem.page_size);
  const std::uint64_t dims[5] = {elements, page_size, panels,
                                 static_cast<std::uint64_t>(problem.num_kv_heads),
                                 static_cast<std::uint64_t>(made.num_pages)};
  const std::uint64_t strides[4] = {static_cast<std::uint64_t>(problem.kv_stride_tokens) * bytes,
                                    std::uint64_t{elements} * bytes,
                                    static_cast<std::uint64_t>(problem.kv_stride_heads) * bytes,
                                    static_cast<std::uint64_t>(problem.kv_stride_pages) * bytes};
  const bool one_panel = variant.is_mla() || page_size < 64;
  const std::uint32_t box[5] = {elements, std::min(page_size, 64U), one_panel ? 1 : panels, 1, 1};
  auto type =
      static_cast<CUtensorMapDataType>(is_e4m3                            ? TensorMapType::kUint8
                                       : variant.dtype_kv == Dtype::kBf16 ? TensorMapType::kBf16
                                                                          : TensorMapType::kFp16);
  auto swizzle = static_cast<CUtensorMapSwizzle>(elements * bytes == 128 ? TensorMapSwizzle::k128B
                                                                         : TensorMapSwizzle::k64B);
  const auto encode = [&](CubistTensorMap& map, const void* address, const std::uint64_t* extents,
                          const std::uint64_t* distances, const std::uint32_t* boxes) {
    const std::uint32_t dense[5] = {1, 1, 1, 1, 1};
    device_.check(device_.table().cuTensorMapEncodeTiled(
                      reinterpret_cast<CUtensorMap*>(&map), type, 5, const_cast<void*>(address),
                      extents, distances, boxes, dense, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                      CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  "cuTensorMapEncodeTiled");
  };
  encode(params_.k_map, params_.k, dims, strides, box);
  if (!variant.is_mla()) {
    encode(params_.v_map, params_.v, dims, strides, box);
    return;
  }
  // Q has panels of 64 elements, whatever the cache's are.
  type = static_cast<CUtensorMapDataType>(variant.dtype_q == Dtype::kBf16 ? TensorMapType::kBf16
                                                                          : TensorMapType::kFp16);
  swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  const std::uint64_t q_dims[5] = {64, static_cast<std::uint64_t>(problem.num_q_heads),
                                   static_cast<std::uint64_t>(std::max(problem.sum_seq_q(), 1)),
                                   head_dim / 64, 1};
  const auto q_token = static_cast<std::uint64_t>(problem.q_stride_tokens) * 2;
  const std::uint64_t q_strides[4] = {static_cast<std::uint64_t>(problem.q_stride_heads) * 2,
                                      q_token, 128, q_token};
  const std::uint32_t q_box[5] = {64, static_cast<std::uint32_t>(made.num_heads_per_cta),
                                  static_cast<std::uint32_t>(made.num_tokens_per_cta_q), 1, 1};
  encode(params_.q_map, params_.q, q_dims, q_strides, q_box);
}

void DecodeLaunch::set_strides(const DecodeCase& made) {
  const DecodeProblem& problem = made.problem;
  params_.q_stride_tokens = problem.q_stride_tokens;
  params_.q_stride_heads = problem.q_stride_heads;
  params_.k_stride_pages = params_.v_stride_pages = problem.kv_stride_pages;
  params_.k_stride_heads = params_.v_stride_heads = problem.kv_stride_heads;
  params_.k_stride_tokens = params_.v_stride_tokens = problem.kv_stride_tokens;
  params_.o_stride_tokens = made.o_stride_tokens;
  params_.o_stride_heads = made.o_stride_heads;
  params_.page_size_log2 = std::countr_zero(static_cast<unsigned>(problem.page_size));
  params_.max_pages_per_seq = problem.max_pages_per_seq;
  params_.window_left = problem.window_left;
}

void DecodeLaunch::set_tensors(const DecodeCase& made, const DecodeTensors& tensors) {
  params_.q = tensors.q();
  params_.k = tensors.k();
  params_.v = tensors.v();
  params_.o = tensors.o();
  params_.sinks = tensors.sinks();
  params_.lse = tensors.lse();
  params_.block_table = tensors.block_table();
  params_.seq_lens_kv = tensors.seq_lens_kv();
  params_.cum_seq_lens_q = tensors.cum_seq_lens_q();
  params_.bmm1_scale_log2 = tensors.bmm1_scale_log2();
  params_.bmm2_scale = tensors.bmm2_scale();
  // Where the kernel is to read the scales from memory, the values beside them must not matter.
  const float unused = std::nanf("");
  params_.scale_softmax_log2 =
      made.scales_on_device ? unused : static_cast<float>(made.problem.scale_log2);
  params_.output_scale =
      made.scales_on_device ? unused : static_cast<float>(made.problem.output_scale);
}

void DecodeLaunch::set_static_fields(const DecodeVariant& variant, const DecodeCase& made,
                                     const DecodeTensors& tensors) {
  params_.fixed.min_tiles_per_cta = made.min_tiles_per_cta;
  params_.fixed.o_sf = tensors.o_sf();
  params_.fixed.o_sf_scale = made.o_sf_scale;
  params_.fixed.o_sf_start_index = made.o_sf_start_index;
  params_.fixed.dtype_o = variant.dtype_o == Dtype::kBf16   ? kCubistDecodeOutputBf16
                          : variant.dtype_o == Dtype::kFp16 ? kCubistDecodeOutputFp16
                          : variant.dtype_o == Dtype::kE4m3 ? kCubistDecodeOutputE4m3
                                                            : kCubistDecodeOutputNvfp4;
}

void DecodeLaunch::poison() {
  partial_o_->fill(0xff);
  partial_stats_->fill(0xff);
}

bool DecodeLaunch::counters_are_zero() const {
  const std::vector<std::int32_t> counters = counters_->download<std::int32_t>();
  return std::all_of(counters.begin(), counters.end(), [](std::int32_t c) { return c == 0; });
}

}  // namespace cubist::test
