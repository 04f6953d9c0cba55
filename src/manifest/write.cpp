#include "manifest/write.h"

#include <algorithm>
#include <type_traits>

#include <fmt/format.h>

#include "manifest/manifest_keys.h"
#include "manifest/trait_fields.h"
#include "model/cuda_version.h"

namespace cubist {
namespace {

void append_string(std::string& out, std::string_view text) {
  out += '"';
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte == '"' || byte == '\\') {
      out += '\\';
      out += character;
    } else if (byte < 0x20) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      out += character;
    }
  }
  out += '"';
}

void append_member(std::string& out, std::string_view indent, std::string_view key,
                   std::string_view text, std::string_view end = ",\n") {
  out.append(indent).append("\"").append(key).append("\": ");
  append_string(out, text);
  out += end;
}

/// The value of a trait as JSON.
std::string trait_text(const KernelTraits& traits, const TraitField& field) {
  return std::visit(
      [&](auto member) -> std::string {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, BothKv>) {
          return fmt::format("\"{}\"", to_string(traits.dtype_k));
        } else {
          using Type = std::remove_cvref_t<decltype(traits.*member)>;
          if constexpr (std::is_enum_v<Type>)
            return fmt::format("\"{}\"", to_string(traits.*member));
          return fmt::format("{}", static_cast<std::uint32_t>(traits.*member));
        }
      },
      field.member);
}

bool is_bool(const TraitField& field) {
  return std::holds_alternative<bool KernelTraits::*>(field.member);
}

/// What a reader takes each trait for if its key is left out and all others are there.
KernelTraits assumed_traits(const KernelTraits& traits) {
  KernelTraits assumed;
  assumed.head_dim_vo = traits.head_dim_qk;
  assumed.head_dim_per_cta_v = traits.head_dim_vo;
  assumed.step_q = traits.tile_q;
  assumed.step_kv = traits.tile_kv;
  assumed.groups_heads_q = traits.kernel_type != KernelType::kContext;
  return assumed;
}

bool is_written(const KernelTraits& traits, const KernelTraits& assumed, KernelFamily family,
                const TraitField& field) {
  const bool one_kv = traits.dtype_k == traits.dtype_v;
  if (std::holds_alternative<BothKv>(field.member)) {
    return one_kv && traits.dtype_k != Dtype::kUnknown;
  }
  if (one_kv && (field.key == "dtype_k" || field.key == "dtype_v")) return false;
  return is_needed_trait(field.key, family) ||
         trait_text(traits, field) != trait_text(assumed, field);
}

void append_traits(std::string& out, const KernelTraits& traits, KernelFamily family) {
  const KernelTraits assumed = assumed_traits(traits);
  out += '{';
  bool first = true;
  for (const TraitField& field : trait_fields()) {
    if (!is_written(traits, assumed, family, field)) continue;
    const std::string text = trait_text(traits, field);
    out.append(first ? "\"" : ",\"").append(field.key).append("\":");
    out += is_bool(field) ? (text == "1" ? "true" : "false") : text;
    first = false;
  }
  out += '}';
}

void append_kernel(std::string& out, const KernelRecord& record, KernelFamily family) {
  out += "{\"name\":";
  append_string(out, record.name);
  if (record.file() != record.name + ".cubin") {
    out += ",\"path\":";
    append_string(out, record.path);
  }
  out +=
      fmt::format(",\"sha256\":\"{}\",\"size\":{},\"arch\":\"{}\",\"traits\":", record.sha256.hex(),
                  record.size_bytes, to_string(record.traits.arch));
  append_traits(out, record.traits, family);
  out += '}';
}

void append_source(std::string& out, const Source& source) {
  out += "{\"type\": ";
  append_string(out, kSourceTypes[static_cast<std::size_t>(source.kind)]);
  out += ", \"location\": ";
  append_string(out, source.location);
  if (!source.prefix.empty()) {
    out += ", \"prefix\": ";
    append_string(out, source.prefix);
  }
  out += '}';
}

/// "key": [ one element a line ]
template <class Element, class Append>
void append_list(std::string& out, std::string_view indent, std::string_view key,
                 const std::vector<Element>& elements, std::string_view element_indent,
                 Append append) {
  out.append(indent).append("\"").append(key).append("\": [");
  bool first = true;
  for (const Element& element : elements) {
    out.append(first ? "\n" : ",\n").append(element_indent);
    append(out, element);
    first = false;
  }
  if (!first) out.append("\n").append(indent);
  out += ']';
}

void append_pack(std::string& out, const Pack& pack) {
  constexpr std::string_view kIndent = "      ";
  out += "{\n";
  append_member(out, kIndent, "name", pack.name);
  if (!pack.version.empty()) append_member(out, kIndent, "version", pack.version);
  if (!pack.license.empty()) append_member(out, kIndent, "license", pack.license);
  append_member(out, kIndent, "family", to_string(pack.family));
  append_member(out, kIndent, "revision", to_string(pack.revision));
  append_member(out, kIndent, "param_layout", to_string(pack.param_layout));
  if (pack.min_driver != 0) {
    append_member(out, kIndent, "min_driver", cuda_version_text(pack.min_driver));
  }
  append_list(out, kIndent, "sources", pack.sources, "        ", append_source);
  out += ",\n";
  append_list(out, kIndent, "kernels", pack.kernels, "",
              [&](std::string& text, const KernelRecord& record) {
                append_kernel(text, record, pack.family);
              });
  out += "\n    }";
}

/// The oldest version that has every key of the manifest, so that older programs go on reading what
/// they can.
std::uint32_t needed_version(const Manifest& manifest) {
  const bool says_driver = std::any_of(manifest.packs.begin(), manifest.packs.end(),
                                       [](const Pack& pack) { return pack.min_driver != 0; });
  return says_driver ? kVersionWithMinDriver : 1;
}

}  // namespace

std::string write_manifest(const Manifest& manifest) {
  std::string out = "{\n";
  append_member(out, "  ", "schema", kSchemaName);
  out += fmt::format("  \"schema_version\": {},\n", needed_version(manifest));
  append_member(out, "  ", "name", manifest.name);
  if (!manifest.description.empty()) append_member(out, "  ", "description", manifest.description);
  if (manifest.serial != 0) out += fmt::format("  \"serial\": {},\n", manifest.serial);
  if (!manifest.expires.empty()) append_member(out, "  ", "expires", manifest.expires);
  append_list(out, "  ", "packs", manifest.packs, "    ", append_pack);
  out += "\n}\n";
  return out;
}

}  // namespace cubist
