#pragma once

#include <cstdint>
#include <string>

#include "base/lent_string.h"
#include "base/sha256.h"
#include "model/dtype.h"
#include "model/enums.h"
#include "model/sm_arch.h"

namespace cubist {

/// What a kernel can do and how it wants to be launched: a row of the metadata, without its name.
/// Plain data, compared field by field (never through a packed key, which loses bits).
///
/// family cubist_decode reads a few fields in its own way: page_size 0 with dynamic_page means any
/// power of two given in the parameters; tile_q is the most (token, head) rows one CTA holds;
/// reuse_smem_k_for_v: MLA, the values are the beginnings of the keys.
///
/// family cubist_aux is found by name: threads, and of a reduction dtype_o (O) and dtype_k =
/// dtype_v (partial results) are all that is said.
struct KernelTraits {
  Dtype dtype_q = Dtype::kUnknown;
  Dtype dtype_k = Dtype::kUnknown;
  Dtype dtype_v = Dtype::kUnknown;
  Dtype dtype_o = Dtype::kUnknown;
  SmArch arch;
  std::uint16_t head_dim_qk = 0;         ///< elements per head of Q and K
  std::uint16_t head_dim_vo = 0;         ///< elements per head of V and O
  std::uint16_t head_dim_per_cta_v = 0;  ///< output columns one CTA produces
  std::uint16_t tile_q = 0;              ///< MMA tile: rows
  std::uint16_t tile_kv = 0;             ///< MMA tile: keys
  std::uint16_t step_q = 0;              ///< rows one CTA handles per iteration
  std::uint16_t step_kv = 0;             ///< keys one CTA handles per iteration
  std::uint16_t threads = 0;             ///< threads per CTA
  std::uint32_t smem = 0;                ///< dynamic shared memory, bytes
  std::uint16_t page_size = 0;           ///< tokens per KV page; 0 not paged, 1 sparse
  bool dynamic_page = false;             ///< the page size is read at run time
  bool dynamic_dtype_o = false;          ///< the output type is read at run time, see writes()
  QkvLayout qkv_layout = QkvLayout::kPagedKv;
  MaskType mask_type = MaskType::kDense;
  KernelType kernel_type = KernelType::kContext;
  TileScheduler scheduler = TileScheduler::kStatic;
  MultiCtasKvMode multi_ctas_kv_mode = MultiCtasKvMode::kOff;
  SparseType sparse_type = SparseType::kNone;
  std::uint8_t sage_block_q = 0;  ///< elements per SageAttention block; 0 = off
  std::uint8_t sage_block_k = 0;
  std::uint8_t sage_block_p = 0;
  std::uint8_t sage_block_v = 0;
  bool groups_heads_q = false;         ///< a CTA's rows are heads of one KV head's group
  bool groups_tokens_heads_q = false;  ///< a CTA's rows are (token, head) pairs
  bool reuse_smem_k_for_v = false;
  bool two_cta_mma = false;
  bool skip_softmax = false;
  std::uint16_t max_q_heads_per_cta = 0;  ///< generations that name a limit for tiles; 0 = none

  // Ways of computing of releases whose selection rules are not known here. A kernel with one of
  // these set is never chosen.
  bool fp16_softmax = false;
  bool spcompress = false;
  bool k_only_transform = false;  ///< bf16 Q, fp8 KV: K alone is transformed
  bool separate_transformed_kv = false;
  bool fuses_inv_rope_fp8_quant = false;
  bool ue8m0_scale_o = false;

  bool operator==(const KernelTraits&) const = default;
};

/// Whether the kernel can write an O of that type.
inline bool writes(const KernelTraits& traits, Dtype dtype_o) {
  if (traits.dtype_o == dtype_o) return true;
  return traits.dynamic_dtype_o && (dtype_o == Dtype::kBf16 || dtype_o == Dtype::kFp16 ||
                                    dtype_o == Dtype::kE4m3 || dtype_o == Dtype::kE2m1);
}

/// One artifact of a manifest. Its identity is sha256, never the name: the same name occurs with
/// other bytes in other releases.
struct KernelRecord {
  LentString name;  ///< function name
  /// Where the file lies if not at `name`.cubin, else empty: it is so nearly always, and tens of
  /// thousands of texts less are opened. file() has the answer for both.
  LentString path;
  Sha256Digest sha256;
  std::uint64_t size_bytes = 0;
  KernelTraits traits;

  /// The file below the pack's sources; relative, "/"-separated, no ".." parts.
  std::string file() const { return path.empty() ? name + ".cubin" : std::string(path); }

  bool operator==(const KernelRecord& other) const {
    return name == other.name && sha256 == other.sha256 && size_bytes == other.size_bytes &&
           traits == other.traits && (path == other.path || file() == other.file());
  }
};

}  // namespace cubist
