#include "aux_on_host.h"

#include <cstring>

#include "launcher/trtllm_gen/lse.h"
#include "launcher/trtllm_gen/reduction.h"
#include "launcher/trtllm_gen/workspace.h"
#include "lse.cuh"
#include "reduce.cuh"
#include "support/catch.h"

namespace cubist::test {
namespace {

constexpr std::size_t kAlignment = 256;
constexpr std::size_t kGuardBytes = 256;
constexpr std::uint8_t kUntouched = 0xa5;

std::uint64_t aligned(const std::vector<std::uint8_t>& bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(bytes.data());
  return (address + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t o_bytes(const ReduceCase& made) {
  const std::int64_t elements = made.sum_seq_q() * made.num_q_heads * made.head_dim_vo();
  return static_cast<std::size_t>(elements) * dtype_bits(made.dtype_o) / 8;
}

template <cubist_aux::Element kO>
void reduce_all(const CubistReduceParams& params, const ReductionPlan& plan) {
  for (unsigned z = 0; z < plan.grid[2]; ++z) {
    for (unsigned y = 0; y < plan.grid[1]; ++y) {
      for (unsigned x = 0; x < plan.grid[0]; ++x) {
        for (unsigned thread = 0; thread < plan.block; ++thread) {
          cubist_aux::reduce<kO>(params, {x, y, z, plan.grid[1], thread});
        }
      }
    }
  }
}

void reduce_all(Dtype dtype_o, const CubistReduceParams& params, const ReductionPlan& plan) {
  using cubist_aux::Element;
  if (dtype_o == Dtype::kBf16) return reduce_all<Element::kBf16>(params, plan);
  if (dtype_o == Dtype::kFp16) return reduce_all<Element::kFp16>(params, plan);
  reduce_all<Element::kE4m3>(params, plan);
}

}  // namespace

ReduceOnHost::ReduceOnHost(const ReduceCase& made, const PartialResults& partial)
    : launch_(launch_of(made)),
      made_(made),
      sinks_(partial.sinks),
      cum_seq_lens_q_(partial.cum_seq_lens_q),
      topk_lens_(made.topk_lens),
      scale_log2_(partial.scale_log2) {
  const trtllm_gen::Workspace carved =
      trtllm_gen::carve_workspace(launch_.problem, launch_.plan, launch_.num_sms);
  workspace_.assign(carved.required_bytes + kAlignment + kGuardBytes, kUntouched);
  workspace_start_ = aligned(workspace_);
  auto* scratch = reinterpret_cast<std::uint8_t*>(workspace_start_ + carved.scratch);
  REQUIRE(partial.partial_stats.size() * 4 <= carved.partial_stats_bytes);
  std::memcpy(scratch, partial.partial_stats.data(), partial.partial_stats.size() * 4);
  std::memcpy(scratch + carved.partial_stats_bytes, partial.partial_o.data(),
              partial.partial_o.size() * 2);
  o_.assign(o_bytes(made) + kAlignment + kGuardBytes, kUntouched);
  o_start_ = aligned(o_);
  lse_.assign(static_cast<std::size_t>(made.sum_seq_q() * launch_.problem.lse_stride_tokens),
              -7.0F);
}

trtllm_gen::Addresses ReduceOnHost::addresses() const {
  const auto address = [](const auto& data) {
    return reinterpret_cast<std::uint64_t>(data.data());
  };
  trtllm_gen::Addresses a;
  a.o = o_start_;
  a.workspace = workspace_start_;
  a.seq_lens_kv = address(made_.kv_lens);
  a.cum_seq_lens_q = address(cum_seq_lens_q_);
  a.topk_lens = address(topk_lens_);
  a.sinks = address(sinks_);
  a.lse = address(lse_);
  a.bmm1_scale = reinterpret_cast<std::uint64_t>(&scale_log2_);
  return a;
}

ReduceOutput ReduceOnHost::run() {
  const auto params = trtllm_gen::fill_reduction_params(launch_.problem, launch_.plan,
                                                        launch_.num_sms, addresses());
  if (!params) FAIL(params.error().message());
  reduce_all(made_.dtype_o, *params, launch_.plan.reduction);

  ReduceOutput output;
  const auto* o = reinterpret_cast<const std::uint8_t*>(o_start_);
  output.o.assign(o, o + o_bytes(made_));
  if (!made_.wants_lse) return output;
  const auto entries = made_.sum_seq_q() * made_.num_q_heads;
  output.softmax_stats.assign(params->softmax_stats, params->softmax_stats + 2 * entries);
  const auto lse =
      trtllm_gen::fill_lse_params(launch_.problem, launch_.plan, launch_.num_sms, addresses());
  if (!lse) FAIL(lse.error().message());
  const std::int64_t threads = std::int64_t{launch_.plan.lse.grid[0]} * launch_.plan.lse.block;
  for (std::int64_t thread = 0; thread < threads; ++thread) cubist_aux::write_lse(*lse, thread);
  for (std::int64_t token = 0; token < made_.sum_seq_q(); ++token) {
    for (int head = 0; head < made_.num_q_heads; ++head) {
      output.lse.push_back(
          lse_[static_cast<std::size_t>(token * launch_.problem.lse_stride_tokens + head)]);
    }
  }
  return output;
}

std::int64_t ReduceOnHost::stray_bytes() const {
  std::int64_t stray = 0;
  const std::uint64_t o_end = o_start_ + o_bytes(made_);
  for (const std::uint8_t& byte : o_) {
    const auto address = reinterpret_cast<std::uint64_t>(&byte);
    if ((address < o_start_ || address >= o_end) && byte != kUntouched) ++stray;
  }
  const std::int64_t stride = launch_.problem.lse_stride_tokens;
  for (std::size_t i = 0; i < lse_.size(); ++i) {
    const bool owned = made_.wants_lse && static_cast<std::int64_t>(i) % stride < made_.num_q_heads;
    if (!owned && lse_[i] != -7.0F) stray += 4;
  }
  return stray;
}

}  // namespace cubist::test
