#include "model/enums.h"

#include <array>
#include <cstddef>

namespace cubist {
namespace {

template <class Enum, std::size_t N>
std::optional<Enum> find(const std::array<std::string_view, N>& names, std::string_view text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (names[i] == text) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

template <class Enum, std::size_t N>
std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("invalid");
}

constexpr std::array<std::string_view, 3> kPhases = {"decode", "context", "ragged"};
constexpr std::array<std::string_view, 4> kQkvLayouts = {"separate", "packed", "paged",
                                                         "contiguous"};
constexpr std::array<std::string_view, 2> kKvLayouts = {"HND", "NHD"};
constexpr std::array<std::string_view, 4> kMasks = {"dense", "causal", "sliding_or_chunked",
                                                    "custom"};
constexpr std::array<std::string_view, 5> kKernelTypes = {"context", "generation", "swaps", "keeps",
                                                          "spec_decoding"};
constexpr std::array<std::string_view, 2> kSchedulers = {"static", "persistent"};
constexpr std::array<std::string_view, 4> kModes = {"off", "gmem", "gmem_separate", "cga_smem"};
constexpr std::array<std::string_view, 3> kSparse = {"none", "static", "dynamic"};
constexpr std::array<std::string_view, 3> kFamilies = {"trtllm_gen_fmha", "cubist_decode",
                                                       "cubist_aux"};
constexpr std::array<std::string_view, 4> kRevisions = {
    "trtllm-gen-fmha-0.6.8", "trtllm-gen-fmha-0.6.13", "cubist-decode-1", "none"};
constexpr std::array<std::string_view, 8> kParamLayouts = {"trtllm-gen-fmha-1088",
                                                           "trtllm-gen-fmha-1152",
                                                           "trtllm-gen-fmha-1280",
                                                           "cubist-decode-1",
                                                           "none",
                                                           "cubist-reduce-1",
                                                           "cubist-lse-1",
                                                           "cubist-fuse-scales-1"};

}  // namespace

std::string_view to_string(Phase value) { return name_of(kPhases, value); }
std::string_view to_string(QkvLayout value) { return name_of(kQkvLayouts, value); }
std::string_view to_string(KvLayout value) { return name_of(kKvLayouts, value); }
std::string_view to_string(MaskType value) { return name_of(kMasks, value); }
std::string_view to_string(KernelType value) { return name_of(kKernelTypes, value); }
std::string_view to_string(TileScheduler value) { return name_of(kSchedulers, value); }
std::string_view to_string(MultiCtasKvMode value) { return name_of(kModes, value); }
std::string_view to_string(SparseType value) { return name_of(kSparse, value); }
std::string_view to_string(KernelFamily value) { return name_of(kFamilies, value); }
std::string_view to_string(HeuristicRevision value) { return name_of(kRevisions, value); }
std::string_view to_string(ParamLayout value) { return name_of(kParamLayouts, value); }

std::optional<Phase> parse_phase(std::string_view text) { return find<Phase>(kPhases, text); }
std::optional<QkvLayout> parse_qkv_layout(std::string_view text) {
  return find<QkvLayout>(kQkvLayouts, text);
}
std::optional<KvLayout> parse_kv_layout(std::string_view text) {
  return find<KvLayout>(kKvLayouts, text);
}
std::optional<MaskType> parse_mask_type(std::string_view text) {
  return find<MaskType>(kMasks, text);
}
std::optional<KernelType> parse_kernel_type(std::string_view text) {
  return find<KernelType>(kKernelTypes, text);
}
std::optional<TileScheduler> parse_tile_scheduler(std::string_view text) {
  return find<TileScheduler>(kSchedulers, text);
}
std::optional<MultiCtasKvMode> parse_multi_ctas_kv_mode(std::string_view text) {
  return find<MultiCtasKvMode>(kModes, text);
}
std::optional<SparseType> parse_sparse_type(std::string_view text) {
  return find<SparseType>(kSparse, text);
}
std::optional<KernelFamily> parse_kernel_family(std::string_view text) {
  return find<KernelFamily>(kFamilies, text);
}
std::optional<HeuristicRevision> parse_heuristic_revision(std::string_view text) {
  return find<HeuristicRevision>(kRevisions, text);
}
std::optional<ParamLayout> parse_param_layout(std::string_view text) {
  return find<ParamLayout>(kParamLayouts, text);
}

std::uint32_t param_layout_bytes(ParamLayout layout) {
  switch (layout) {
    case ParamLayout::kTrtllmGenFmha1088:
      return 1088;
    case ParamLayout::kTrtllmGenFmha1152:
      return 1152;
    case ParamLayout::kTrtllmGenFmha1280:
      return 1280;
    case ParamLayout::kCubistDecode1:
      return 560;  // 512, behind 48 that align its descriptors in sm_90a's constant bank
    case ParamLayout::kCubistReduce1:
      return 128;
    case ParamLayout::kCubistLse1:
      return 48;
    case ParamLayout::kCubistFuseScales1:
      return 80;
    case ParamLayout::kNone:
      break;
  }
  return 0;
}

}  // namespace cubist
