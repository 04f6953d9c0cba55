#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "document/document.h"
#include "presets/model_preset.h"

namespace cubist::presets {

/// The readers of one config.json share this: the object that holds the text model's fields, and
/// the family it belongs to.
struct HfFields {
  DocumentNode node;
  std::string model_type;  ///< without "_text"

  /// A field that must be there.
  std::int32_t required(std::string_view key, std::int64_t max = 1 << 20) const {
    std::int32_t value = 1;
    node.required(key).read_integer(value, 1, max);
    return value;
  }
  /// A field that may be absent or null.
  std::int32_t optional(std::string_view key, std::int32_t otherwise,
                        std::int64_t max = 1 << 20) const {
    std::int32_t value = otherwise;
    node.member(key).read_integer(value, 0, max);
    return value;
  }
  bool is_family(std::initializer_list<std::string_view> names) const {
    for (const std::string_view name : names) {
      if (model_type == name) return true;
    }
    return false;
  }
};

/// The kinds of layers of a model with grouped-query attention, windows included.
std::vector<AttentionPreset> read_gqa_layers(const HfFields& fields);

/// The absorbed (decode) and expanded (prefill) shapes of multi-head latent attention.
std::vector<AttentionPreset> read_mla_layers(const HfFields& fields);

}  // namespace cubist::presets
