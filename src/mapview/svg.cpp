#include "mapview/svg.h"

#include <algorithm>
#include <cmath>

#include "mapview/describe.h"
#include "mapview/fields.h"

namespace cubist::mapview {
namespace {

constexpr double kMarginLeft = 58;
constexpr double kMarginTop = 46;
constexpr double kPanelGap = 54;
constexpr double kPanelWidth = 720;
constexpr double kPanelHeight = 384;
constexpr double kLegendLine = 18;
constexpr double kSmallestLetter = 6.5;

/// Cells of a row from `first` up to `end` that look alike.
struct Run {
  std::size_t first = 0;
  std::size_t end = 0;
  const Cell* cell = nullptr;
};

std::vector<Run> runs_of(const CellMap& map, std::size_t q, std::size_t row) {
  std::vector<Run> runs;
  for (std::size_t kv = 0; kv < map.axes.max_kv_len.size(); ++kv) {
    const Cell& cell = map.at(q, row, kv);
    if (runs.empty() || !look_alike(*runs.back().cell, cell)) runs.push_back({kv, kv, &cell});
    runs.back().end = kv + 1;
  }
  return runs;
}

/// Draws one map; holds what every step of it needs.
class Drawer {
 public:
  Drawer(const Legend& legend, std::size_t number, const CellMap& map, bool with_titles)
      : legend_(legend), number_(number), map_(map), with_titles_(with_titles) {
    width_ = std::clamp(kPanelWidth / static_cast<double>(map.axes.max_kv_len.size()), 1.5, 24.0);
    height_ = std::clamp(kPanelHeight / static_cast<double>(map.axes.batch.size()), 2.0, 18.0);
  }

  MapDrawing draw() {
    put("<text x=\"0\" y=\"14\" class=\"t\">{}</text>", escaped(map_.title));
    put("<text x=\"0\" y=\"30\" class=\"s\">{}</text>", escaped(map_.label));
    double top = kMarginTop;
    for (std::size_t q = 0; q < map_.axes.max_q_len.size(); ++q) {
      top += 14;
      out_.panels.push_back({kMarginLeft, top, width_, height_});
      draw_panel(q, top);
      top += panel_height() + kPanelGap - 14;
    }
    out_.height = top;
    out_.width = kMarginLeft + panel_width() + 24;
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> text, Args&&... args) {
    fmt::format_to(std::back_inserter(out_.body), text, std::forward<Args>(args)...);
    out_.body += '\n';
  }

  double panel_width() const { return width_ * static_cast<double>(map_.axes.max_kv_len.size()); }
  double panel_height() const { return height_ * static_cast<double>(map_.axes.batch.size()); }

  void draw_panel(std::size_t q, double top) {
    put("<text x=\"{}\" y=\"{}\" class=\"s\">max_q_len {}</text>", kMarginLeft, top - 4,
        map_.axes.max_q_len[q]);
    const std::size_t rows = map_.axes.batch.size();
    std::string edges;
    for (std::size_t row = 0; row < rows; ++row) {
      // Small batches below, as on any chart.
      const double y = top + height_ * static_cast<double>(rows - 1 - row);
      for (const Run& run : runs_of(map_, q, row)) draw_run(q, row, run, y);
      add_edges(q, row, y, edges);
    }
    // Above the cells: edges, so that fields show without colours, and then the letters.
    if (!edges.empty()) put("<path class=\"e\" d=\"{}\"/>", edges);
    draw_letters(q, top);
    put("<rect x=\"{}\" y=\"{}\" width=\"{:.2f}\" height=\"{:.2f}\" class=\"f\"/>", kMarginLeft,
        top, panel_width(), panel_height());
    draw_batches(top);
    draw_lengths(top + panel_height());
  }

  /// One letter in each field that has room for it, larger in larger ones.
  void draw_letters(std::size_t q, double top) {
    const auto rows = static_cast<double>(map_.axes.batch.size());
    for (const CellBox& room : rooms_of_fields(map_, q, width_, height_)) {
      const Cell& cell = map_.at(q, room.row, room.column);
      if (cell.kernel == Cell::kNone) continue;
      const LegendEntry& entry = legend_.entries()[legend_.entry_of(number_, cell.kernel)];
      const double width = width_ * static_cast<double>(room.columns());
      const double height = height_ * static_cast<double>(room.rows());
      const double letters = static_cast<double>(entry.code.size());
      const double size = std::min({13.0, 1.2 * height, 1.2 * width / letters});
      if (size < kSmallestLetter) continue;
      const double x = kMarginLeft + width_ * static_cast<double>(room.column) + width / 2;
      const double y = top + height_ * (rows - static_cast<double>(room.end_row)) + height / 2;
      // A halo of the field's colour keeps letters legible on stripes.
      const std::string halo = cell.fallback == FallbackReason::kNone
                                   ? std::string()
                                   : fmt::format(" stroke=\"{}\"", entry.fill);
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"l\"{} font-size=\"{:.1f}\" "
          "fill=\"{}\">{}</text>",
          x, y + 0.36 * size, halo, size, entry.ink, entry.code);
    }
  }

  /// Lines at the left of runs and below cells that differ from those of the row below.
  void add_edges(std::size_t q, std::size_t row, double y, std::string& edges) const {
    const auto x_of = [&](std::size_t kv) {
      return kMarginLeft + width_ * static_cast<double>(kv);
    };
    for (const Run& run : runs_of(map_, q, row)) {
      if (run.first == 0) continue;
      edges += fmt::format("M{:.2f} {:.2f}v{:.2f}", x_of(run.first), y, height_);
    }
    if (row == 0) return;
    const std::size_t columns = map_.axes.max_kv_len.size();
    for (std::size_t kv = 0; kv < columns;) {
      std::size_t end = kv;
      while (end < columns && !look_alike(map_.at(q, row, end), map_.at(q, row - 1, end))) ++end;
      if (end > kv) {
        edges += fmt::format("M{:.2f} {:.2f}H{:.2f}", x_of(kv), y + height_, x_of(end));
      }
      kv = end + 1;
    }
  }

  void draw_run(std::size_t q, std::size_t row, const Run& run, double y) {
    const double x = kMarginLeft + width_ * static_cast<double>(run.first);
    const double w = width_ * static_cast<double>(run.end - run.first);
    const bool gap = run.cell->kernel == Cell::kNone;
    const std::string fill =
        gap ? "url(#gap)" : legend_.entries()[legend_.entry_of(number_, run.cell->kernel)].fill;
    put_rect(x, y, w, fill, with_titles_ ? title_of(q, row, run) : std::string());
    if (run.cell->fallback != FallbackReason::kNone) put_rect(x, y, w, "url(#fallback)", {});
  }

  void put_rect(double x, double y, double w, std::string_view fill, const std::string& title) {
    fmt::format_to(std::back_inserter(out_.body),
                   "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" "
                   "fill=\"{}\"",
                   x, y, w, height_, fill);
    out_.body += fill == "url(#fallback)" ? " pointer-events=\"none\"" : "";
    out_.body += title.empty() ? "/>\n" : "><title>" + title + "</title></rect>\n";
  }

  std::string title_of(std::size_t q, std::size_t row, const Run& run) const {
    const Axes& axes = map_.axes;
    std::string text =
        fmt::format("batch {}, max_q_len {}, max_kv_len {}..{}\n", axes.batch[row],
                    axes.max_q_len[q], axes.max_kv_len[run.first], axes.max_kv_len[run.end - 1]);
    const Cell& cell = *run.cell;
    if (cell.kernel == Cell::kNone) return text + "no kernel";
    text += map_.kernels[static_cast<std::size_t>(cell.kernel)]->name;
    if (run.end - run.first > 1) {
      text += fmt::format("\nat max_kv_len {}:", axes.max_kv_len[run.first]);
    }
    text += fmt::format("\ngrid {} x {} x {}, {} CTAs per KV sequence, cluster {}", cell.grid[0],
                        cell.grid[1], cell.grid[2], cell.num_ctas_kv, cell.cluster);
    if (cell.time > 0) text += fmt::format("\nmodelled cost {:.0f}", cell.time);
    if (cell.runner_up != Cell::kNone) {
      text += fmt::format("\nrunner-up {} ({:.0f})",
                          map_.kernels[static_cast<std::size_t>(cell.runner_up)]->name,
                          cell.runner_up_time);
    }
    if (cell.fallback != FallbackReason::kNone) {
      text += "\nfallback: " + fallback_text(cell.fallback);
    }
    std::string out;
    for (const char c : text) out += c == '\n' ? std::string("&#10;") : escaped({&c, 1});
    return out;
  }

  void draw_batches(double top) {
    const std::size_t last = map_.axes.batch.size() - 1;
    const auto middle_of = [&](std::size_t row) {
      return top + height_ * (static_cast<double>(last - row) + 0.5) + 3.5;
    };
    double free = top + panel_height() + 12;
    for (std::size_t row = 0; row <= last; ++row) {
      const double y = middle_of(row);
      if (y > free || (row < last && y < middle_of(last) + 11)) continue;
      free = y - 11;
      put("<text x=\"{}\" y=\"{:.1f}\" class=\"a\" text-anchor=\"end\">{}</text>", kMarginLeft - 5,
          y, map_.axes.batch[row]);
    }
    put("<text x=\"12\" y=\"{:.1f}\" class=\"a\" transform=\"rotate(-90 12 {:.1f})\" "
        "text-anchor=\"middle\">batch</text>",
        top + panel_height() / 2, top + panel_height() / 2);
  }

  void draw_lengths(double bottom) {
    double free = 0;
    const auto half_width = [&](std::size_t kv) {
      return 3.4 * static_cast<double>(std::to_string(map_.axes.max_kv_len[kv]).size());
    };
    const std::size_t last = map_.axes.max_kv_len.size() - 1;
    const auto middle_of = [&](std::size_t kv) {
      return kMarginLeft + width_ * (static_cast<double>(kv) + 0.5);
    };
    for (std::size_t kv = 0; kv <= last; ++kv) {
      const double x = middle_of(kv);
      const bool hides_last =
          kv < last && x + half_width(kv) + 10 > middle_of(last) - half_width(last);
      if (x - half_width(kv) < free || hides_last) continue;
      free = x + half_width(kv) + 10;
      put("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"a\" text-anchor=\"middle\">{}</text>", x,
          bottom + 12, map_.axes.max_kv_len[kv]);
    }
    put("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"a\" text-anchor=\"middle\">max_kv_len</text>",
        kMarginLeft + panel_width() / 2, bottom + 25);
  }

  const Legend& legend_;
  std::size_t number_;
  const CellMap& map_;
  bool with_titles_;
  double width_ = 1;
  double height_ = 1;
  MapDrawing out_;
};

void put_legend_line(std::string_view fill, std::string_view ink, std::string_view code,
                     const std::string& text, double y, std::string& out) {
  out += fmt::format(
      "<rect x=\"0\" y=\"{0}\" width=\"26\" height=\"14\" fill=\"{1}\" class=\"f2\"/>"
      "<text x=\"13\" y=\"{2}\" class=\"l\" font-size=\"11\" fill=\"{3}\">{4}</text>"
      "<text x=\"34\" y=\"{2}\" class=\"s\">{5}</text>\n",
      y, fill, y + 11, ink, code, escaped(text));
}

std::string legend_drawing(const Legend& legend, double& height) {
  std::string out;
  double y = 0;
  for (const LegendEntry& entry : legend.entries()) {
    if (entry.cells == 0) continue;
    put_legend_line(entry.fill, entry.ink, entry.code,
                    fmt::format("{} ({} cells)", entry.kind, entry.cells), y, out);
    y += kLegendLine;
  }
  if (legend.fallbacks() > 0) {
    put_legend_line("url(#fallback)", "#000", "",
                    fmt::format("striped: fallback, the rules find nothing and another kernel "
                                "serves ({} cells)",
                                legend.fallbacks()),
                    y, out);
    y += kLegendLine;
  }
  if (legend.gaps() > 0) {
    put_legend_line("url(#gap)", "#000", "",
                    fmt::format("crossed: no kernel ({} cells)", legend.gaps()), y, out);
    y += kLegendLine;
  }
  height = y;
  return out;
}

}  // namespace

std::string drawing_definitions() {
  return "<defs>"
         "<pattern id=\"fallback\" width=\"10\" height=\"10\" patternUnits=\"userSpaceOnUse\" "
         "patternTransform=\"rotate(45)\"><rect width=\"2\" height=\"10\" fill=\"#b03a00\"/>"
         "<rect x=\"2\" width=\"1\" height=\"10\" fill=\"#fff\"/></pattern>"
         "<pattern id=\"gap\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
         "<rect width=\"6\" height=\"6\" fill=\"#fff\"/>"
         "<path d=\"M0 0L6 6M6 0L0 6\" stroke=\"#888\" stroke-width=\"1\"/></pattern>"
         "</defs>\n"
         "<style>text{font-family:system-ui,sans-serif}.t{font-size:15px;font-weight:600}"
         ".s{font-size:12px}.a{font-size:10px}"
         ".l{font-weight:600;text-anchor:middle;pointer-events:none;"
         "paint-order:stroke;stroke-width:3px}"
         "rect{shape-rendering:crispEdges}"
         ".e{fill:none;stroke:#000;stroke-width:.7;pointer-events:none}"
         ".f{fill:none;stroke:#333;pointer-events:none}.f2{stroke:#333}</style>\n";
}

MapDrawing draw_map(const Legend& legend, std::size_t number, const CellMap& map,
                    bool with_titles) {
  return Drawer(legend, number, map, with_titles).draw();
}

std::string render_svg(const std::vector<CellMap>& maps, std::size_t per_row) {
  const Legend legend(maps);
  double legend_height = 0;
  const std::string entries = legend_drawing(legend, legend_height);
  std::string body = fmt::format("<g transform=\"translate(16 16)\">\n{}</g>\n", entries);
  double x = 16;
  double top = 16 + legend_height + 16;
  double row_height = 0;
  double width = 640;
  for (std::size_t i = 0; i < maps.size(); ++i) {
    if (i > 0 && i % per_row == 0) {
      x = 16;
      top += row_height + 16;
      row_height = 0;
    }
    const MapDrawing drawing = draw_map(legend, i, maps[i], true);
    body += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", x, top, drawing.body);
    x += drawing.width + 16;
    width = std::max(width, x);
    row_height = std::max(row_height, drawing.height);
  }
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n"
             "<title>Which kernel serves which problem</title>\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
             width, top + row_height) +
         drawing_definitions() + body + "</svg>\n";
}

}  // namespace cubist::mapview
