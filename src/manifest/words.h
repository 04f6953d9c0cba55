#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/dtype.h"
#include "model/enums.h"

namespace cubist {

// parse_word<Enum>: the enum's own parse function, for code written once for all of them.
template <class Enum>
std::optional<Enum> parse_word(std::string_view text) = delete;
template <>
inline std::optional<Dtype> parse_word(std::string_view text) {
  return parse_dtype(text);
}
template <>
inline std::optional<QkvLayout> parse_word(std::string_view text) {
  return parse_qkv_layout(text);
}
template <>
inline std::optional<MaskType> parse_word(std::string_view text) {
  return parse_mask_type(text);
}
template <>
inline std::optional<KernelType> parse_word(std::string_view text) {
  return parse_kernel_type(text);
}
template <>
inline std::optional<TileScheduler> parse_word(std::string_view text) {
  return parse_tile_scheduler(text);
}
template <>
inline std::optional<MultiCtasKvMode> parse_word(std::string_view text) {
  return parse_multi_ctas_kv_mode(text);
}
template <>
inline std::optional<SparseType> parse_word(std::string_view text) {
  return parse_sparse_type(text);
}
template <>
inline std::optional<KernelFamily> parse_word(std::string_view text) {
  return parse_kernel_family(text);
}
template <>
inline std::optional<HeuristicRevision> parse_word(std::string_view text) {
  return parse_heuristic_revision(text);
}
template <>
inline std::optional<ParamLayout> parse_word(std::string_view text) {
  return parse_param_layout(text);
}

template <>
inline std::optional<Phase> parse_word(std::string_view text) {
  return parse_phase(text);
}

/// "static or persistent": every word of an enum.
template <class Enum>
std::string word_list() {
  std::string words;
  std::string last;
  for (int i = 0; i < 256; ++i) {
    const std::string_view word = to_string(static_cast<Enum>(i));
    if (!parse_word<Enum>(word)) break;
    if (!last.empty()) words += words.empty() ? last : ", " + last;
    last = word;
  }
  return words.empty() ? last : words + " or " + last;
}

}  // namespace cubist
