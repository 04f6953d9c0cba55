#include "mapview/describe.h"

#include "codec/plan_json.h"

namespace cubist::mapview {

std::string kind_of(const KernelRecord& record) {
  const KernelTraits& t = record.traits;
  std::string out = fmt::format("tile_q {}, {}, {}, {}", t.tile_q, to_string(t.kernel_type),
                                to_string(t.scheduler), to_string(t.multi_ctas_kv_mode));
  // Dense and causal are names of two releases for the same decode kernels; a problem says which it
  // needs, so they never differ within a class.
  if (t.mask_type == MaskType::kSlidingOrChunked) out += ", windowed";
  if (t.head_dim_per_cta_v != t.head_dim_vo && t.head_dim_per_cta_v != 0) {
    out += fmt::format(", {} columns a CTA", t.head_dim_per_cta_v);
  }
  if (t.two_cta_mma) out += ", 2-CTA MMA";
  if (t.skip_softmax) out += ", skips softmax";
  return out;
}

std::string fallback_text(FallbackReason reason) { return std::string(to_string(reason)); }

std::string code_of(std::size_t number) {
  std::string code(1, static_cast<char>('A' + number % 26));
  if (number >= 26) code += std::to_string(number / 26);
  return code;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out += c;
    }
  }
  return out;
}

}  // namespace cubist::mapview
