#pragma once

#include <cstdint>

#include "model/kernel_record.h"

namespace cubist::selector {

// The fields of a look-up, side by side in words wide enough to hold each of them whole, so that
// equal words mean equal fields.

/// What is fixed for a request: element types, SageAttention blocks, layout, sparse type.
inline std::uint64_t type_word(const KernelTraits& t) {
  return static_cast<std::uint64_t>(t.dtype_q) | static_cast<std::uint64_t>(t.dtype_k) << 4 |
         static_cast<std::uint64_t>(t.dtype_v) << 8 | static_cast<std::uint64_t>(t.dtype_o) << 12 |
         std::uint64_t{t.sage_block_q} << 16 | std::uint64_t{t.sage_block_k} << 24 |
         std::uint64_t{t.sage_block_p} << 32 | std::uint64_t{t.sage_block_v} << 40 |
         static_cast<std::uint64_t>(t.qkv_layout) << 48 |
         static_cast<std::uint64_t>(t.sparse_type) << 52;
}

/// The head sizes, fixed for a request too.
inline std::uint64_t shape_word(const KernelTraits& t) {
  return std::uint64_t{t.head_dim_qk} | std::uint64_t{t.head_dim_vo} << 16;
}

/// What the passes of a rule set vary: sizes ...
inline std::uint64_t tile_word(const KernelTraits& t) {
  return std::uint64_t{t.head_dim_per_cta_v} | std::uint64_t{t.tile_q} << 16 |
         std::uint64_t{t.tile_kv} << 32 | std::uint64_t{t.page_size} << 48;
}

/// ... and kinds.
inline std::uint32_t kind_word(const KernelTraits& t) {
  return static_cast<std::uint32_t>(t.mask_type) | static_cast<std::uint32_t>(t.kernel_type) << 4 |
         static_cast<std::uint32_t>(t.scheduler) << 8 |
         static_cast<std::uint32_t>(t.multi_ctas_kv_mode) << 12 |
         (t.reuse_smem_k_for_v ? 1U << 16 : 0) | (t.two_cta_mma ? 1U << 17 : 0) |
         (t.skip_softmax ? 1U << 18 : 0) | (t.dynamic_page ? 1U << 19 : 0);
}

/// Multiplies to 128 bits and folds: each input bit reaches every output bit.
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a ^ 0x9e3779b97f4a7c15U) * (b ^ 0xd6e8feb86659fd93U);
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline std::uint64_t hash_words(std::uint32_t group, std::uint64_t tile, std::uint32_t kind) {
  return mix(tile, std::uint64_t{kind} << 32 | group);
}

}  // namespace cubist::selector
