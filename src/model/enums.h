#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cubist {

// Values are those of the published metadata, so that a column can be read straight into them.

enum class Phase : std::uint8_t { kDecode = 0, kContext = 1, kRagged = 2 };
enum class QkvLayout : std::uint8_t { kSeparate = 0, kPacked = 1, kPagedKv = 2, kContiguousKv = 3 };
enum class KvLayout : std::uint8_t { kHnd = 0, kNhd = 1 };
enum class MaskType : std::uint8_t { kDense = 0, kCausal = 1, kSlidingOrChunked = 2, kCustom = 3 };
enum class KernelType : std::uint8_t {
  kContext = 0,
  kGeneration = 1 /* only in requests */,
  kSwapsMmaAbGeneration = 2,
  kKeepsMmaAbGeneration = 3,
  kSpecDecoding = 4 /* only in requests */,
};
enum class TileScheduler : std::uint8_t { kStatic = 0, kPersistent = 1 };
/// How a KV sequence is spread over CTAs and put together again.
enum class MultiCtasKvMode : std::uint8_t {
  kOff = 0,
  kGlobalMemory = 1,
  kSeparateReduction = 2,
  kClusterSharedMemory = 3,
};
enum class SparseType : std::uint8_t { kNone = 0, kStaticTokens = 1, kDynamicTokens = 2 };

/// The kernels' families: what traits mean, how parameters are laid out, which rules choose.
enum class KernelFamily : std::uint8_t {
  kTrtllmGenFmha = 0,
  kCubistDecode = 1,
  kCubistAux = 2,  ///< launched beside attention kernels: reduction, LSE, fused scales
};

/// Which published rules choose; named by a manifest's pack, so that a new one moves no old choice.
enum class HeuristicRevision : std::uint8_t {
  kTrtllmGenFmha_0_6_8 = 0,
  kTrtllmGenFmha_0_6_13 = 1,
  kCubistDecode_1 = 2,
  kNone = 3,  ///< no rules are known: artifacts to list, fetch and verify; selection refuses
};

/// The layout of the kernel's parameter block.
enum class ParamLayout : std::uint8_t {
  kTrtllmGenFmha1088 = 0,
  kTrtllmGenFmha1152 = 1,
  kTrtllmGenFmha1280 = 2,
  kCubistDecode1 = 3,
  kNone = 4,           ///< no layout is known: such kernels are never launched
  kCubistReduce1 = 5,  // model/aux_params.h, this one and the next two
  kCubistLse1 = 6,
  kCubistFuseScales1 = 7,
};

// Names used in JSON, on the command line and in messages; one spelling each.
// parse_* return an empty optional for any other text.
std::string_view to_string(Phase value);            // decode context ragged
std::string_view to_string(QkvLayout value);        // separate packed paged contiguous
std::string_view to_string(KvLayout value);         // HND NHD
std::string_view to_string(MaskType value);         // dense causal sliding_or_chunked custom
std::string_view to_string(KernelType value);       // context generation swaps keeps spec_decoding
std::string_view to_string(TileScheduler value);    // static persistent
std::string_view to_string(MultiCtasKvMode value);  // off gmem gmem_separate cga_smem
std::string_view to_string(SparseType value);       // none static dynamic
std::string_view to_string(KernelFamily value);     // trtllm_gen_fmha cubist_decode cubist_aux
std::string_view to_string(HeuristicRevision value);  // trtllm-gen-fmha-0.6.8 ... none
std::string_view to_string(ParamLayout value);        // trtllm-gen-fmha-1088 ... none

std::optional<Phase> parse_phase(std::string_view text);
std::optional<QkvLayout> parse_qkv_layout(std::string_view text);
std::optional<KvLayout> parse_kv_layout(std::string_view text);
std::optional<MaskType> parse_mask_type(std::string_view text);
std::optional<KernelType> parse_kernel_type(std::string_view text);
std::optional<TileScheduler> parse_tile_scheduler(std::string_view text);
std::optional<MultiCtasKvMode> parse_multi_ctas_kv_mode(std::string_view text);
std::optional<SparseType> parse_sparse_type(std::string_view text);
std::optional<KernelFamily> parse_kernel_family(std::string_view text);
std::optional<HeuristicRevision> parse_heuristic_revision(std::string_view text);
std::optional<ParamLayout> parse_param_layout(std::string_view text);

/// Bytes of the parameter block a kernel of this layout declares; 0 for kNone.
std::uint32_t param_layout_bytes(ParamLayout layout);

}  // namespace cubist
