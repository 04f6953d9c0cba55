#include "launcher/decode_maps.h"

#include <algorithm>

#include "launcher/encode_tensor_map.h"

namespace cubist::launcher {
namespace {

constexpr std::uint32_t kPanelElements = 64;
constexpr std::int32_t kTileTokens = 64;
constexpr std::uint64_t kElementBytes = 2;
// The block table alone says which pages exist, as for the kernels without maps.
constexpr std::uint64_t kAnyPage = 0x7fffffff;

constexpr std::uint64_t kPanelBytes = kPanelElements * kElementBytes;

std::uint64_t bytes(std::int64_t elements) {
  return static_cast<std::uint64_t>(elements) * kElementBytes;
}

std::uint32_t panels_of(const AttentionProblem& p) {
  return static_cast<std::uint32_t>(p.head_dim_qk) / kPanelElements;
}

TensorMapSpec swizzled(const AttentionProblem& p, std::string_view slot, std::uint64_t address) {
  TensorMapSpec spec;
  spec.slot = slot;
  spec.address = address;
  spec.type = p.dtype_k == Dtype::kBf16 ? TensorMapType::kBf16 : TensorMapType::kFp16;
  spec.rank = 5;
  spec.swizzle = TensorMapSwizzle::k128B;
  return spec;
}

TensorMapSpec describe_kv(const AttentionProblem& p, bool is_mla, std::string_view slot,
                          std::uint64_t address) {
  TensorMapSpec spec = swizzled(p, slot, address);
  const bool one_panel = is_mla || p.page_size < kTileTokens;
  spec.dims = {kPanelElements, static_cast<std::uint64_t>(p.page_size), panels_of(p),
               static_cast<std::uint64_t>(p.num_kv_heads), kAnyPage};
  spec.strides = {bytes(p.kv_stride_tokens), kPanelBytes, bytes(p.kv_stride_heads),
                  bytes(p.kv_stride_batch)};
  spec.box = {kPanelElements, static_cast<std::uint32_t>(std::min(p.page_size, kTileTokens)),
              one_panel ? 1U : panels_of(p), 1, 1};
  return spec;
}

TensorMapSpec describe_q(const AttentionProblem& p, const LaunchPlan& plan, std::uint64_t address) {
  TensorMapSpec spec = swizzled(p, "q", address);
  spec.dims = {kPanelElements, static_cast<std::uint64_t>(p.num_q_heads),
               static_cast<std::uint64_t>(p.sum_seq_q), panels_of(p), 1};
  spec.strides = {bytes(p.q_stride_heads), bytes(p.q_stride_tokens), kPanelBytes,
                  bytes(p.q_stride_tokens)};
  spec.box = {kPanelElements, static_cast<std::uint32_t>(plan.num_heads_per_cta),
              static_cast<std::uint32_t>(plan.num_tokens_per_cta_q), 1, 1};
  return spec;
}

std::array<TensorMapSpec, 2> describe(const AttentionProblem& problem, const LaunchPlan& plan,
                                      const CallArgs& args) {
  const bool is_mla = plan.record->traits.reuse_smem_k_for_v;
  return {describe_kv(problem, is_mla, "k", args.k),
          is_mla ? describe_q(problem, plan, args.q)
                 : describe_kv(problem, is_mla, "v", value_address(args))};
}

}  // namespace

Result<std::array<TensorMapSpec, 2>> describe_decode_maps(const AttentionProblem& problem,
                                                          const LaunchPlan& plan,
                                                          const CallArgs& args) {
  const std::array<TensorMapSpec, 2> specs = describe(problem, plan, args);
  for (const TensorMapSpec& spec : specs) CUBIST_RETURN_IF_ERROR(check_tensor_map(spec));
  return specs;
}

Status encode_decode_maps(const driver::Driver& driver, const AttentionProblem& problem,
                          const LaunchPlan& plan, const CallArgs& args,
                          CubistDecodeParams& params) {
  if (plan.record->traits.scheduler != TileScheduler::kPersistent) return {};
  const std::array<TensorMapSpec, 2> specs = describe(problem, plan, args);
  CUBIST_RETURN_IF_ERROR(encode_tensor_map(driver, specs[0], &params.k_map));
  // Or q_map, which lies there too.
  return encode_tensor_map(driver, specs[1], &params.v_map);
}

}  // namespace cubist::launcher
