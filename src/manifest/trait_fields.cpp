#include "manifest/trait_fields.h"

#include <algorithm>
#include <cstdlib>

namespace cubist {
namespace {

using T = KernelTraits;

// Ranges are sanity bounds, an order of magnitude above anything published.
constexpr std::array<TraitField, kNumTraitFields> kFields = {{
    {"dtype_q", &T::dtype_q},
    {"dtype_kv", BothKv{}},
    {"dtype_k", &T::dtype_k},
    {"dtype_v", &T::dtype_v},
    {"dtype_o", &T::dtype_o},
    {"head_dim_qk", &T::head_dim_qk, 1, 8192},
    {"head_dim_vo", &T::head_dim_vo, 1, 8192},
    {"head_dim_per_cta_v", &T::head_dim_per_cta_v, 1, 8192},
    {"tile_q", &T::tile_q, 1, 4096},
    {"tile_kv", &T::tile_kv, 1, 4096},
    {"step_q", &T::step_q, 1, 4096},
    {"step_kv", &T::step_kv, 1, 4096},
    {"kernel_type", &T::kernel_type},
    {"mask_type", &T::mask_type},
    {"scheduler", &T::scheduler},
    {"multi_ctas_kv_mode", &T::multi_ctas_kv_mode},
    {"qkv_layout", &T::qkv_layout},
    {"page_size", &T::page_size, 0, 65535},
    {"dynamic_page", &T::dynamic_page},
    {"dynamic_dtype_o", &T::dynamic_dtype_o},
    {"sparse_type", &T::sparse_type},
    {"threads", &T::threads, 1, 1024},
    {"smem", &T::smem, 0, 1 << 20},
    {"groups_heads_q", &T::groups_heads_q},
    {"groups_tokens_heads_q", &T::groups_tokens_heads_q},
    {"reuse_smem_k_for_v", &T::reuse_smem_k_for_v},
    {"two_cta_mma", &T::two_cta_mma},
    {"skip_softmax", &T::skip_softmax},
    {"max_q_heads_per_cta", &T::max_q_heads_per_cta, 0, 4096},
    {"fp16_softmax", &T::fp16_softmax},
    {"spcompress", &T::spcompress},
    {"k_only_transform", &T::k_only_transform},
    {"separate_transformed_kv", &T::separate_transformed_kv},
    {"fuses_inv_rope_fp8_quant", &T::fuses_inv_rope_fp8_quant},
    {"ue8m0_scale_o", &T::ue8m0_scale_o},
    {"sage_block_q", &T::sage_block_q, 0, 255},
    {"sage_block_k", &T::sage_block_k, 0, 255},
    {"sage_block_p", &T::sage_block_p, 0, 255},
    {"sage_block_v", &T::sage_block_v, 0, 255},
}};

constexpr std::size_t index_of(std::string_view key) {
  for (std::size_t i = 0; i < kFields.size(); ++i) {
    if (kFields[i].key == key) return i;
  }
  std::abort();  // a key misspelt in this room: not a constant expression, so it does not compile
}

constexpr TraitSet bit_of(std::string_view key) { return TraitSet{1} << index_of(key); }

constexpr TraitSet kKeyDtypeKv = bit_of("dtype_kv");
constexpr TraitSet kKeyDtypeK = bit_of("dtype_k");
constexpr TraitSet kKeyDtypeV = bit_of("dtype_v");
constexpr TraitSet kKeyHeadDimVo = bit_of("head_dim_vo");
constexpr TraitSet kKeyHeadDimPerCtaV = bit_of("head_dim_per_cta_v");
constexpr TraitSet kKeyStepQ = bit_of("step_q");
constexpr TraitSet kKeyStepKv = bit_of("step_kv");
constexpr TraitSet kKeyGroupsHeadsQ = bit_of("groups_heads_q");
constexpr std::array<std::string_view, 8> kRequired = {
    "dtype_q", "dtype_o", "head_dim_qk", "tile_q", "tile_kv", "kernel_type", "threads", "smem"};

constexpr TraitSet required_bits() {
  TraitSet bits = 0;
  for (const std::string_view key : kRequired) bits |= bit_of(key);
  return bits;
}
constexpr TraitSet kRequiredBits = required_bits();

}  // namespace

const std::array<TraitField, kNumTraitFields>& trait_fields() { return kFields; }

bool says_kv_twice(TraitSet seen) {
  return (seen & kKeyDtypeKv) != 0 && (seen & (kKeyDtypeK | kKeyDtypeV)) != 0;
}

void apply_trait_defaults(KernelTraits& traits, TraitSet seen) {
  if (!(seen & kKeyHeadDimVo)) traits.head_dim_vo = traits.head_dim_qk;
  if (!(seen & kKeyHeadDimPerCtaV)) traits.head_dim_per_cta_v = traits.head_dim_vo;
  if (!(seen & kKeyStepQ)) traits.step_q = traits.tile_q;
  if (!(seen & kKeyStepKv)) traits.step_kv = traits.tile_kv;
  if (!(seen & kKeyGroupsHeadsQ)) {
    traits.groups_heads_q = traits.kernel_type != KernelType::kContext;
  }
}

bool is_needed_trait(std::string_view key, KernelFamily family) {
  if (family == KernelFamily::kCubistAux) return key == "threads";
  return std::find(kRequired.begin(), kRequired.end(), key) != kRequired.end();
}

std::string_view missing_trait(TraitSet seen, KernelFamily family) {
  // As nearly all kernels are; the rest looks up keys by name.
  if ((seen & kRequiredBits) == kRequiredBits && (seen & kKeyDtypeKv) != 0) return {};
  for (const std::string_view key : kRequired) {
    if (!(seen & bit_of(key)) && is_needed_trait(key, family)) return key;
  }
  if (seen & kKeyDtypeKv || family == KernelFamily::kCubistAux) return {};
  if (!(seen & (kKeyDtypeK | kKeyDtypeV))) return "dtype_kv";
  if (!(seen & kKeyDtypeK)) return "dtype_k";
  return seen & kKeyDtypeV ? std::string_view() : std::string_view("dtype_v");
}

}  // namespace cubist
