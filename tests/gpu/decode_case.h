#pragma once

#include <cstdint>
#include <string>

#include "model/dtype.h"
#include "reference/decode_reference.h"

namespace cubist::test {

/// What of a decode kernel the choice of problems depends on.
struct DecodeVariant {
  std::string name;
  Dtype dtype_q = Dtype::kBf16;
  Dtype dtype_kv = Dtype::kBf16;
  int head_dim = 0;
  int head_dim_vo = 0;
  int tile_q = 0;
  std::uint32_t threads = 0;
  std::uint32_t smem = 0;  ///< bytes
  bool persistent = false;
  Dtype dtype_o = Dtype::kBf16;
  bool dynamic_dtype_o = false;  ///< dtype_o is one of several

  /// V is the beginning of K: one copy of the cache.
  bool is_mla() const { return head_dim != head_dim_vo; }
};

/// A random problem for one kernel and how to launch it. Numbers are already rounded to the
/// kernel's types. Where no row may look there is NaN: in pages nobody owns, behind the last key of
/// a page, between padded rows; block table entries without a page are far out of range.
struct DecodeCase {
  DecodeProblem problem;
  int max_q_len = 1;
  bool gives_cum_seq_lens_q = false;
  bool wants_lse = false;
  bool scales_on_device = false;
  bool pdl = false;
  bool nhd = false;
  bool one_copy = false;      ///< MLA: there is no V beside K
  std::int64_t v_offset = 0;  ///< K and V as halves of one tensor: V's first element; else 0
  std::int64_t o_stride_tokens = 0;
  std::int64_t o_stride_heads = 0;
  int num_tokens_per_cta_q = 1;
  int num_heads_per_cta = 1;
  int num_ctas_kv = 1;  ///< persistent: groups of CTAs
  int num_pages = 0;    ///< in the pool
  int min_tiles_per_cta = 4;
  float o_sf_scale = -1.0F;  ///< nvfp4 output
  int o_sf_start_index = 0;

  /// One line for messages.
  std::string text() const;
};

/// The same case for the same seed and variant everywhere.
DecodeCase make_decode_case(const DecodeVariant& variant, std::uint64_t seed);

}  // namespace cubist::test
