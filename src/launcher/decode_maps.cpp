#include "launcher/decode_maps.h"

#include <algorithm>

#include "launcher/encode_tensor_map.h"

namespace cubist::launcher {
namespace {

constexpr std::int32_t kTileTokens = 64;
constexpr std::uint32_t kMaxPanelBytes = 128;
// The block table alone says which pages exist, as for the kernels without maps.
constexpr std::uint64_t kAnyPage = 0x7fffffff;

/// How the rows of a tensor are copied: in panels of at most 128 bytes.
struct Panels {
  std::uint32_t element_bytes;
  std::uint32_t elements;  ///< of a panel
  std::uint32_t count;     ///< of a row

  Panels(const AttentionProblem& p, Dtype type)
      : element_bytes(dtype_bits(type) / 8),
        elements(
            std::min(static_cast<std::uint32_t>(p.head_dim_qk), kMaxPanelBytes / element_bytes)),
        count(static_cast<std::uint32_t>(p.head_dim_qk) / elements) {}

  std::uint64_t bytes(std::int64_t distance) const {
    return static_cast<std::uint64_t>(distance) * element_bytes;
  }
  std::uint64_t panel_bytes() const { return bytes(elements); }
};

TensorMapSpec swizzled(const Panels& panels, Dtype type, std::string_view slot,
                       std::uint64_t address) {
  TensorMapSpec spec;
  spec.slot = slot;
  spec.address = address;
  spec.type = type == Dtype::kBf16   ? TensorMapType::kBf16
              : type == Dtype::kFp16 ? TensorMapType::kFp16
                                     : TensorMapType::kUint8;
  spec.rank = 5;
  spec.swizzle =
      panels.panel_bytes() == kMaxPanelBytes ? TensorMapSwizzle::k128B : TensorMapSwizzle::k64B;
  return spec;
}

TensorMapSpec describe_kv(const AttentionProblem& p, bool is_mla, std::string_view slot,
                          std::uint64_t address) {
  const Panels panels(p, p.dtype_k);
  TensorMapSpec spec = swizzled(panels, p.dtype_k, slot, address);
  const bool one_panel = is_mla || p.page_size < kTileTokens;
  spec.dims = {panels.elements, static_cast<std::uint64_t>(p.page_size), panels.count,
               static_cast<std::uint64_t>(p.num_kv_heads), kAnyPage};
  spec.strides = {panels.bytes(p.kv_stride_tokens), panels.panel_bytes(),
                  panels.bytes(p.kv_stride_heads), panels.bytes(p.kv_stride_batch)};
  spec.box = {panels.elements, static_cast<std::uint32_t>(std::min(p.page_size, kTileTokens)),
              one_panel ? 1U : panels.count, 1, 1};
  return spec;
}

TensorMapSpec describe_q(const AttentionProblem& p, const LaunchPlan& plan, std::uint64_t address) {
  const Panels panels(p, p.dtype_q);
  TensorMapSpec spec = swizzled(panels, p.dtype_q, "q", address);
  spec.dims = {panels.elements, static_cast<std::uint64_t>(p.num_q_heads),
               static_cast<std::uint64_t>(p.sum_seq_q), panels.count, 1};
  spec.strides = {panels.bytes(p.q_stride_heads), panels.bytes(p.q_stride_tokens),
                  panels.panel_bytes(), panels.bytes(p.q_stride_tokens)};
  spec.box = {panels.elements, static_cast<std::uint32_t>(plan.num_heads_per_cta),
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
