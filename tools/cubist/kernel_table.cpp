#include "kernel_table.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "manifest/filter.h"
#include "manifest/trait_fields.h"

namespace cubist::tools {
namespace {

constexpr std::size_t kNumColumns = 11;
using Cells = std::array<std::string, kNumColumns>;

const Cells kTitles = {"ARCH",  "Q",    "KV",   "O",     "HEAD", "PAGE",
                       "PHASE", "MASK", "TILE", "BYTES", "NAME"};

std::string page_text(const KernelTraits& traits) {
  if (traits.dynamic_page) return "any";
  return traits.page_size == 0 ? "-" : std::to_string(traits.page_size);
}

std::string_view short_mask(MaskType mask) {
  return mask == MaskType::kSlidingOrChunked ? std::string_view("window") : to_string(mask);
}

std::string kv_text(const KernelTraits& traits) {
  if (traits.dtype_k == traits.dtype_v) return std::string(to_string(traits.dtype_k));
  return fmt::format("{}/{}", to_string(traits.dtype_k), to_string(traits.dtype_v));
}

std::string head_text(const KernelTraits& traits) {
  if (traits.head_dim_qk == traits.head_dim_vo) return std::to_string(traits.head_dim_qk);
  return fmt::format("{}/{}", traits.head_dim_qk, traits.head_dim_vo);
}

Cells cells_of(const KernelRow& row) {
  const KernelTraits& traits = row.record->traits;
  const std::string arch = to_string(traits.arch);
  const std::string bytes = std::to_string(row.record->size_bytes);
  if (row.pack->family == KernelFamily::kCubistAux) {
    return {arch, "-", "-", "-", "-", "-", "-", "-", "-", bytes, row.record->name};
  }
  return {arch,
          std::string(to_string(traits.dtype_q)),
          kv_text(traits),
          traits.dynamic_dtype_o ? "any" : std::string(to_string(traits.dtype_o)),
          head_text(traits),
          page_text(traits),
          std::string(to_string(phase_of(traits))),
          std::string(short_mask(traits.mask_type)),
          fmt::format("{}x{}", traits.tile_q, traits.tile_kv),
          bytes,
          row.record->name};
}

}  // namespace

std::string kernel_table(const std::vector<KernelRow>& rows) {
  std::array<std::size_t, kNumColumns> widths{};
  const auto widen = [&](const Cells& cells) {
    for (std::size_t i = 0; i + 1 < kNumColumns; ++i)
      widths[i] = std::max(widths[i], cells[i].size());
  };
  widen(kTitles);
  std::vector<Cells> lines;
  lines.reserve(rows.size());
  for (const KernelRow& row : rows) {
    lines.push_back(cells_of(row));
    widen(lines.back());
  }
  std::string out;
  const auto append = [&](const Cells& cells) {
    for (std::size_t i = 0; i < kNumColumns; ++i) {
      out += cells[i];
      if (i + 1 < kNumColumns) out.append(widths[i] - cells[i].size() + 2, ' ');
    }
    out += '\n';
  };
  append(kTitles);
  for (const Cells& cells : lines) append(cells);
  return out;
}

nlohmann::ordered_json kernel_json(const KernelRow& row) {
  const KernelTraits& traits = row.record->traits;
  nlohmann::ordered_json all = nlohmann::ordered_json::object();
  for (const TraitField& field : trait_fields()) {
    std::visit(
        [&](auto member) {
          if constexpr (!std::is_same_v<decltype(member), BothKv>) {
            using Value = std::remove_cvref_t<decltype(traits.*member)>;
            nlohmann::ordered_json& out = all[std::string(field.key)];
            if constexpr (std::is_enum_v<Value>) {
              out = to_string(traits.*member);
            } else {
              out = traits.*member;
            }
          }
        },
        field.member);
  }
  return {{"pack", row.pack->name},         {"name", row.record->name},
          {"path", row.record->file()},     {"sha256", row.record->sha256.hex()},
          {"size", row.record->size_bytes}, {"arch", to_string(traits.arch)},
          {"traits", std::move(all)}};
}

}  // namespace cubist::tools
