#include "importer/name_check.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

// fmhaSm100fKernel_ QE4m3KvE2m1OBfloat16 HQk576HV512 HVPerCta256 PagedKv Dense P32 MultiCtasKvCga
// VarSeq
//   SkipsSoftmax Q64Kv128 SageQ1SageK4SageV1 Static 2Cta KeepsAbForGen       (without the spaces)
// Types may also be QkvE4m3 (all one) or QkInt8VE4m3 (Q and K, V); heads H128 (Q, K and V).

namespace cubist {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

/// The number that stands right behind the first `word` that has one.
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    std::uint32_t number = 0;
    const char* begin = text.data() + at + word.size();
    if (std::from_chars(begin, text.data() + text.size(), number).ec == std::errc()) return number;
  }
  return std::nullopt;
}

/// "Q64Kv128" as {64, 128}.
std::optional<std::pair<std::uint32_t, std::uint32_t>> tile_in(std::string_view text) {
  for (std::size_t kv = text.find("Kv"); kv != std::string_view::npos;
       kv = text.find("Kv", kv + 1)) {
    std::size_t start = kv;
    while (start > 0 && is_digit(text[start - 1])) --start;
    if (start == kv || start == 0 || text[start - 1] != 'Q') continue;
    const std::optional<std::uint32_t> q = number_after(text.substr(start - 1), "Q");
    const std::optional<std::uint32_t> tile_kv = number_after(text.substr(kv), "Kv");
    if (q && tile_kv) return std::pair(*q, *tile_kv);
  }
  return std::nullopt;
}

/// A type's name at the front of the text, which is taken off.
std::optional<Dtype> take_dtype(std::string_view& text) {
  constexpr std::array<std::pair<std::string_view, Dtype>, 7> kNames = {{{"E4m3", Dtype::kE4m3},
                                                                         {"E5m2", Dtype::kE5m2},
                                                                         {"E2m1", Dtype::kE2m1},
                                                                         {"Bfloat16", Dtype::kBf16},
                                                                         {"Fp16", Dtype::kFp16},
                                                                         {"Fp32", Dtype::kFp32},
                                                                         {"Int8", Dtype::kInt8}}};
  for (const auto& [name, dtype] : kNames) {
    if (!text.starts_with(name)) continue;
    text.remove_prefix(name.size());
    return dtype;
  }
  return std::nullopt;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

struct NameTypes {
  std::optional<Dtype> q;
  std::optional<Dtype> k;
  std::optional<Dtype> v;
  std::optional<Dtype> o;
};

/// The types at the front of `text`, which is left behind them.
NameTypes take_types(std::string_view& text) {
  NameTypes types;
  if (take(text, "Qkv")) {
    types.q = types.k = types.v = take_dtype(text);
  } else if (take(text, "Qk")) {
    types.q = types.k = take_dtype(text);
    if (take(text, "V")) types.v = take_dtype(text);
  } else if (take(text, "Q")) {
    types.q = take_dtype(text);
    if (take(text, "Kv")) types.k = types.v = take_dtype(text);
  }
  if (take(text, "O")) types.o = take_dtype(text);
  return types;
}

/// Collects the first contradiction.
class Comparison {
 public:
  template <class Name, class Row>
  void compare(std::string_view field, const std::optional<Name>& name, const Row& row) {
    if (!name || contradiction_ || *name == row) return;
    contradiction_ = fmt::format("{}: the name says {}, the row {}", field, text(*name), text(row));
  }
  template <class Value>
  void compare_value(std::string_view field, const Value& name, const Value& row) {
    compare(field, std::optional(name), row);
  }
  std::optional<std::string> take() { return std::move(contradiction_); }

 private:
  static std::string text(bool value) { return value ? "true" : "false"; }
  static std::string text(std::string_view value) { return std::string(value); }
  static std::string text(std::uint32_t value) { return fmt::format("{}", value); }
  template <class Enum>
  static std::string text(const Enum& value) {
    return std::string(to_string(value));
  }

  std::optional<std::string> contradiction_;
};

std::optional<std::uint32_t> page_in(std::string_view text) {
  for (std::size_t at = text.find('P', 1); at != std::string_view::npos;
       at = text.find('P', at + 1)) {
    if (text[at - 1] < 'a' || text[at - 1] > 'z') continue;
    const std::string_view rest = text.substr(at);
    if (rest.size() > 1 && is_digit(rest[1])) return number_after(rest, "P");
  }
  return std::nullopt;
}

void compare_shapes(Comparison& result, std::string_view text, const KernelTraits& traits) {
  const std::uint32_t vo = traits.head_dim_vo;
  if (text.starts_with("HQk")) {
    result.compare("head_dim_qk", number_after(text, "HQk"), std::uint32_t{traits.head_dim_qk});
    result.compare("head_dim_vo", number_after(text, "HV"), vo);
  } else if (text.starts_with("H")) {
    result.compare("head_dim_qk", number_after(text, "H"), std::uint32_t{traits.head_dim_qk});
    result.compare("head_dim_vo", number_after(text, "H"), vo);
  }
  result.compare("head_dim_per_cta_v", number_after(text, "HVPerCta"),
                 std::uint32_t{traits.head_dim_per_cta_v});
  result.compare("page_size", page_in(text), std::uint32_t{traits.page_size});
  if (const auto tile = tile_in(text)) {
    result.compare_value("tile_q", tile->first, std::uint32_t{traits.tile_q});
    result.compare_value("tile_kv", tile->second, std::uint32_t{traits.tile_kv});
  }
}

void compare_words(Comparison& result, std::string_view text, const KernelTraits& traits) {
  const MultiCtasKvMode mode = traits.multi_ctas_kv_mode;
  result.compare_value("skip_softmax", contains(text, "SkipsSoftmax"), traits.skip_softmax);
  result.compare_value("two_cta_mma", contains(text, "2Cta"), traits.two_cta_mma);
  if (contains(text, "MultiCtasKv") != (mode != MultiCtasKvMode::kOff) ||
      contains(text, "MultiCtasKvCga") != (mode == MultiCtasKvMode::kClusterSharedMemory)) {
    const std::string_view said = contains(text, "MultiCtasKvCga") ? "cga_smem"
                                  : contains(text, "MultiCtasKv")  ? "gmem"
                                                                   : "off";
    result.compare_value("multi_ctas_kv_mode", said, to_string(mode));
  }
  result.compare_value(
      "scheduler",
      contains(text, "Persistent") ? TileScheduler::kPersistent : TileScheduler::kStatic,
      traits.scheduler);
  std::optional<KernelType> type;
  if (text.ends_with("Context")) type = KernelType::kContext;
  if (text.ends_with("SwapsAbForGen")) type = KernelType::kSwapsMmaAbGeneration;
  if (text.ends_with("KeepsAbForGen")) type = KernelType::kKeepsMmaAbGeneration;
  result.compare("kernel_type", type, traits.kernel_type);
  const bool sliding = contains(text, "SlidingOrChunkedCausal");
  if (sliding != (traits.mask_type == MaskType::kSlidingOrChunked) ||
      contains(text, "Custom") != (traits.mask_type == MaskType::kCustom)) {
    result.compare_value("mask_type", std::string_view(sliding ? "sliding_or_chunked" : "another"),
                         to_string(traits.mask_type));
  }
}

}  // namespace

std::optional<std::string> name_contradiction(std::string_view name, const KernelTraits& traits) {
  std::string_view text = name;
  if (!take(text, "fmhaSm")) return std::nullopt;
  const std::size_t kernel = text.find("Kernel_");
  if (kernel == std::string_view::npos) return std::nullopt;
  Comparison result;
  result.compare("arch", parse_sm_arch(text.substr(0, kernel)), traits.arch);
  text.remove_prefix(kernel + std::string_view("Kernel_").size());
  const NameTypes types = take_types(text);
  result.compare("dtype_q", types.q, traits.dtype_q);
  result.compare("dtype_k", types.k, traits.dtype_k);
  result.compare("dtype_v", types.v, traits.dtype_v);
  result.compare("dtype_o", types.o, traits.dtype_o);
  compare_shapes(result, text, traits);
  compare_words(result, text, traits);
  return result.take();
}

}  // namespace cubist
