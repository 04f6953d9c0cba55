#pragma once

#include <string>
#include <vector>

#include "mapview/cell_map.h"

namespace cubist::mapview {

/// One kind of kernel with its letter and colour, the same on every map that shares the legend.
struct LegendEntry {
  std::string code;
  std::string kind;
  std::string fill;                ///< "#rrggbb"
  std::string ink;                 ///< for letters upon it: black or white
  std::vector<std::string> names;  ///< kernels of that kind, each once
  std::size_t cells = 0;           ///< that it serves, over all maps
};

class Legend {
 public:
  /// Kinds by the number of cells they serve, most first; those that serve none come last and are
  /// only runners-up.
  explicit Legend(const std::vector<CellMap>& maps);

  const std::vector<LegendEntry>& entries() const { return entries_; }
  /// The entry of a kernel of map `map`.
  std::size_t entry_of(std::size_t map, std::int32_t kernel) const {
    return numbers_[map][static_cast<std::size_t>(kernel)];
  }
  std::size_t gaps() const { return gaps_; }
  std::size_t fallbacks() const { return fallbacks_; }

 private:
  std::vector<LegendEntry> entries_;
  std::vector<std::vector<std::size_t>> numbers_;  // by map, then kernel
  std::size_t gaps_ = 0;
  std::size_t fallbacks_ = 0;
};

}  // namespace cubist::mapview
