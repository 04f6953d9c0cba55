#include "mapview/fields.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace cubist::mapview {
namespace {

/// Numbers of sets that are joined step by step.
class Joined {
 public:
  explicit Joined(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t number) {
    while (parent_[number] != number) {
      parent_[number] = parent_[parent_[number]];
      number = parent_[number];
    }
    return number;
  }
  void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> parent_;
};

/// The field of each cell of a panel: [batch][max_kv_len].
std::vector<std::size_t> number_fields(const CellMap& map, std::size_t q) {
  const std::size_t rows = map.axes.batch.size();
  const std::size_t columns = map.axes.max_kv_len.size();
  Joined joined(rows * columns);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const std::size_t at = row * columns + column;
      const Cell& cell = map.at(q, row, column);
      if (column > 0 && look_alike(cell, map.at(q, row, column - 1))) joined.join(at, at - 1);
      if (row > 0 && look_alike(cell, map.at(q, row - 1, column))) joined.join(at, at - columns);
    }
  }
  std::vector<std::size_t> fields(rows * columns);
  for (std::size_t at = 0; at < fields.size(); ++at) fields[at] = joined.find(at);
  return fields;
}

/// Keeps the roomiest rectangle of each field.
class Roomiest {
 public:
  Roomiest(std::size_t fields, double cell_width, double cell_height)
      : boxes_(fields), rooms_(fields), cell_width_(cell_width), cell_height_(cell_height) {}

  void offer(std::size_t field, const CellBox& box) {
    const double width = cell_width_ * static_cast<double>(box.columns());
    const double height = cell_height_ * static_cast<double>(box.rows());
    const std::pair<double, double> room{std::min(width, height), width * height};
    if (!(rooms_[field] < room)) return;
    rooms_[field] = room;
    boxes_[field] = box;
  }

  std::vector<CellBox> take() const {
    std::vector<CellBox> found;
    for (const CellBox& box : boxes_) {
      if (box.rows() > 0) found.push_back(box);
    }
    return found;
  }

 private:
  std::vector<CellBox> boxes_;
  std::vector<std::pair<double, double>> rooms_;
  double cell_width_;
  double cell_height_;
};

}  // namespace

bool look_alike(const Cell& a, const Cell& b) {
  return a.kernel == b.kernel && a.fallback == b.fallback;
}

std::vector<CellBox> rooms_of_fields(const CellMap& map, std::size_t q, double cell_width,
                                     double cell_height) {
  const std::size_t columns = map.axes.max_kv_len.size();
  const std::vector<std::size_t> fields = number_fields(map, q);
  Roomiest roomiest(fields.size(), cell_width, cell_height);
  // Rectangles that end in one row: bars of cells of one field upon each column, the widest
  // rectangle under each bar's top. Bars that may still grow to the right wait on a stack, lowest
  // first.
  struct Bar {
    std::size_t column, height;
  };
  std::vector<std::size_t> heights(columns, 0);
  for (std::size_t row = 0; row < map.axes.batch.size(); ++row) {
    const std::size_t* here = fields.data() + row * columns;
    std::vector<Bar> waiting;
    for (std::size_t column = 0; column <= columns; ++column) {
      if (column < columns) {
        const bool grows = row > 0 && here[column] == fields[(row - 1) * columns + column];
        heights[column] = grows ? heights[column] + 1 : 1;
      }
      const bool cut = column == columns || (column > 0 && here[column] != here[column - 1]);
      const std::size_t height = cut ? 0 : heights[column];
      std::size_t first = column;
      while (!waiting.empty() && waiting.back().height >= height) {
        const Bar bar = waiting.back();
        waiting.pop_back();
        first = bar.column;
        roomiest.offer(here[column - 1], {row + 1 - bar.height, row + 1, first, column});
      }
      if (column < columns) waiting.push_back({cut ? column : first, heights[column]});
    }
  }
  return roomiest.take();
}

}  // namespace cubist::mapview
