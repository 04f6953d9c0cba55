#include <array>
#include <cstdint>
#include <span>

#include "manifest/rules.h"

namespace cubist {
namespace {

bool is_requested_type(KernelType type) {
  return type == KernelType::kGeneration || type == KernelType::kSpecDecoding;
}

/// Shapes and types of a kernel that computes attention.
Status check_attention(const KernelTraits& traits) {
  const std::array<std::pair<std::string_view, std::uint32_t>, 7> positive = {
      {{"head_dim_qk", traits.head_dim_qk},
       {"head_dim_vo", traits.head_dim_vo},
       {"head_dim_per_cta_v", traits.head_dim_per_cta_v},
       {"tile_q", traits.tile_q},
       {"tile_kv", traits.tile_kv},
       {"step_q", traits.step_q},
       {"step_kv", traits.step_kv}}};
  for (const auto& [key, value] : positive) {
    if (value == 0) return invalid(key, "must not be 0");
  }
  if (traits.head_dim_vo % traits.head_dim_per_cta_v != 0) {
    return invalid("head_dim_per_cta_v", "{} does not divide head_dim_vo {}",
                   traits.head_dim_per_cta_v, traits.head_dim_vo);
  }
  const std::array<std::pair<std::string_view, Dtype>, 4> dtypes = {{{"dtype_q", traits.dtype_q},
                                                                     {"dtype_k", traits.dtype_k},
                                                                     {"dtype_v", traits.dtype_v},
                                                                     {"dtype_o", traits.dtype_o}}};
  for (const auto& [key, dtype] : dtypes) {
    if (dtype == Dtype::kUnknown) return invalid(key, "the element type is unknown");
  }
  return {};
}

/// Nothing that chooses by a known revision may meet ways of computing that it knows nothing of.
Status check_known_ways(const KernelTraits& traits, HeuristicRevision revision) {
  if (revision == HeuristicRevision::kNone) return {};
  const std::array<std::pair<std::string_view, bool>, 6> flags = {
      {{"fp16_softmax", traits.fp16_softmax},
       {"spcompress", traits.spcompress},
       {"k_only_transform", traits.k_only_transform},
       {"separate_transformed_kv", traits.separate_transformed_kv},
       {"fuses_inv_rope_fp8_quant", traits.fuses_inv_rope_fp8_quant},
       {"ue8m0_scale_o", traits.ue8m0_scale_o}}};
  for (const auto& [key, value] : flags) {
    if (value) return invalid(key, "revision '{}' knows no such kernels", to_string(revision));
  }
  return {};
}

}  // namespace

Status check_traits(const KernelTraits& traits, const Pack& pack) {
  if (is_requested_type(traits.kernel_type)) {
    return invalid("kernel_type",
                   "'{}' occurs in requests only; a kernel is context, swaps or keeps",
                   to_string(traits.kernel_type));
  }
  if (traits.threads == 0 || traits.threads > 1024) {
    return invalid("threads", "{}; a CTA has 1 to 1024", traits.threads);
  }
  CUBIST_RETURN_IF_ERROR(check_known_ways(traits, pack.revision));
  return pack.family == KernelFamily::kCubistAux ? Status() : check_attention(traits);
}

}  // namespace cubist
