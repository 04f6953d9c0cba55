#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/document.h"
#include "model/kernel_record.h"

namespace cubist::overrides {

/// One trait of a kernel as rules name it. Every value has a text: "64", "cga_smem", "true".
struct FilterField {
  std::string_view name;
  std::string (*value)(const KernelRecord& record);
  bool (*is_value)(std::string_view text);  ///< whether a kernel could have it
  std::string_view accepted;                ///< for messages
};

/// What kernels a rule speaks of: those that have one of the values in each field it names.
class KernelFilter {
 public:
  /// Reads {"tile_q": 64, "multi_ctas_kv_mode": ["gmem", "off"]}; complains in the document.
  static KernelFilter read(const DocumentNode& node);

  bool empty() const { return conditions_.empty(); }
  bool matches(const KernelRecord& record) const;
  /// "tile_q 64, multi_ctas_kv_mode gmem or off"
  std::string describe() const;

 private:
  struct Condition {
    const FilterField* field = nullptr;
    std::vector<std::string> values;
  };
  std::vector<Condition> conditions_;
};

}  // namespace cubist::overrides
