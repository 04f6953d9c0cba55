#include "mapview/text.h"

#include <algorithm>
#include <cctype>

#include "mapview/legend.h"

namespace cubist::mapview {
namespace {

constexpr std::size_t kMargin = 8;  // "  65535 "

/// One character a cell: letters run out after 26 kinds, then digits.
char mark_of(std::size_t entry) {
  if (entry < 26) return static_cast<char>('A' + entry);
  return entry < 36 ? static_cast<char>('0' + (entry - 26)) : '#';
}

char mark_of(const Legend& legend, std::size_t map, const Cell& cell) {
  if (cell.kernel == Cell::kNone) return '.';
  const char mark = mark_of(legend.entry_of(map, cell.kernel));
  if (cell.fallback == FallbackReason::kNone) return mark;
  return static_cast<char>(std::tolower(static_cast<unsigned char>(mark)));
}

/// Lengths under some columns, as far apart as their digits need.
std::string kv_line(const std::vector<std::int32_t>& values) {
  std::string line(kMargin + values.size() + 12, ' ');
  std::size_t free = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string text = std::to_string(values[i]);
    const std::size_t at = kMargin + i;
    if (at < free || at + text.size() > line.size()) continue;
    line.replace(at, text.size(), text);
    free = at + text.size() + 2;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

std::string panel(const Legend& legend, std::size_t number, const CellMap& map, std::size_t q) {
  std::string out = fmt::format("max_q_len {}\n  batch\n", map.axes.max_q_len[q]);
  for (std::size_t row = map.axes.batch.size(); row-- > 0;) {
    out += fmt::format("{:>7} ", map.axes.batch[row]);
    for (std::size_t kv = 0; kv < map.axes.max_kv_len.size(); ++kv) {
      out += mark_of(legend, number, map.at(q, row, kv));
    }
    out += '\n';
  }
  return out + kv_line(map.axes.max_kv_len) + "  max_kv_len\n";
}

}  // namespace

std::size_t columns_that_fit(std::size_t width) {
  return std::clamp<std::size_t>(width, 40, 400) - kMargin - 12;
}

std::string render_text(const std::vector<CellMap>& maps) {
  const Legend legend(maps);
  std::string out;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    out += fmt::format("{}\n{}\n", maps[i].title, maps[i].label);
    for (std::size_t q = 0; q < maps[i].axes.max_q_len.size(); ++q) {
      out += panel(legend, i, maps[i], q);
    }
    out += '\n';
  }
  for (std::size_t i = 0; i < legend.entries().size(); ++i) {
    const LegendEntry& entry = legend.entries()[i];
    if (entry.cells == 0) continue;
    out += fmt::format("{}  {:>7} cells  {}\n", mark_of(i), entry.cells, entry.kind);
  }
  if (legend.fallbacks() > 0) {
    out += fmt::format(
        "lower case: {} cells where the rules find nothing and another kernel "
        "serves\n",
        legend.fallbacks());
  }
  if (legend.gaps() > 0) out += fmt::format(".  {:>7} cells without a kernel\n", legend.gaps());
  return out;
}

}  // namespace cubist::mapview
