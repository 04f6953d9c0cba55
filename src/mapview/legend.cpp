#include "mapview/legend.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "mapview/describe.h"

namespace cubist::mapview {
namespace {

struct Colour {
  const char* fill;
  const char* ink;
};

// Neighbours in this order differ in lightness as well as in hue, so that a grey print and eyes
// that do not tell red from green still see edges; letters do the rest.
constexpr std::array<Colour, 16> kColours = {{{"#cfe8f7", "#000"},
                                              {"#0a5c8f", "#fff"},
                                              {"#f5d76e", "#000"},
                                              {"#6a3d9a", "#fff"},
                                              {"#b2df8a", "#000"},
                                              {"#1b6b3a", "#fff"},
                                              {"#f7c6d9", "#000"},
                                              {"#9c2f55", "#fff"},
                                              {"#d9d9d9", "#000"},
                                              {"#4d4d4d", "#fff"},
                                              {"#8fd3c8", "#000"},
                                              {"#7a4a12", "#fff"},
                                              {"#c9c2f0", "#000"},
                                              {"#3b3f8f", "#fff"},
                                              {"#e3cfa4", "#000"},
                                              {"#266e73", "#fff"}}};

}  // namespace

Legend::Legend(const std::vector<CellMap>& maps) {
  std::map<std::string, std::size_t> known;
  std::vector<std::vector<std::size_t>> first_numbers;
  for (const CellMap& map : maps) {
    std::vector<std::size_t>& numbers = first_numbers.emplace_back();
    for (const KernelRecord* record : map.kernels) {
      const std::string kind = kind_of(*record);
      const auto [at, added] = known.try_emplace(kind, entries_.size());
      if (added) {
        entries_.emplace_back();
        entries_.back().kind = kind;
      }
      std::vector<std::string>& names = entries_[at->second].names;
      if (std::find(names.begin(), names.end(), record->name) == names.end()) {
        names.push_back(record->name);
      }
      numbers.push_back(at->second);
    }
    for (const Cell& cell : map.cells) {
      if (cell.kernel == Cell::kNone) {
        ++gaps_;
        continue;
      }
      if (cell.fallback != FallbackReason::kNone) ++fallbacks_;
      ++entries_[numbers[static_cast<std::size_t>(cell.kernel)]].cells;
    }
  }
  std::vector<std::size_t> order(entries_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return entries_[a].cells > entries_[b].cells;
  });
  std::vector<LegendEntry> sorted;
  std::vector<std::size_t> place(entries_.size());
  for (const std::size_t number : order) {
    place[number] = sorted.size();
    LegendEntry entry = entries_[number];
    const Colour& colour = kColours[sorted.size() % kColours.size()];
    entry.code = code_of(sorted.size());
    entry.fill = colour.fill;
    entry.ink = colour.ink;
    sorted.push_back(std::move(entry));
  }
  entries_ = std::move(sorted);
  for (const std::vector<std::size_t>& numbers : first_numbers) {
    std::vector<std::size_t>& placed = numbers_.emplace_back();
    for (const std::size_t number : numbers) placed.push_back(place[number]);
  }
}

}  // namespace cubist::mapview
