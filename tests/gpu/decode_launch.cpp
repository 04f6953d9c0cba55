#include "gpu/decode_launch.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace cubist::test {

DecodeLaunch::DecodeLaunch(const Device& device, const DecodeVariant& variant,
                           const DecodeCase& made, const DecodeTensors& tensors) {
  set_geometry(made);
  set_strides(made);
  set_tensors(made, tensors);
  const std::size_t tiles = static_cast<std::size_t>(params_.num_ctas_q) * grid_[1] * grid_[2];
  const std::size_t rows = tiles * static_cast<std::size_t>(made.num_ctas_kv * variant.tile_q);
  partial_o_ = std::make_unique<DeviceBuffer>(
      device, rows * static_cast<std::size_t>(variant.head_dim) * sizeof(float));
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

void DecodeLaunch::poison() {
  partial_o_->fill(0xff);
  partial_stats_->fill(0xff);
}

bool DecodeLaunch::counters_are_zero() const {
  const std::vector<std::int32_t> counters = counters_->download<std::int32_t>();
  return std::all_of(counters.begin(), counters.end(), [](std::int32_t c) { return c == 0; });
}

}  // namespace cubist::test
