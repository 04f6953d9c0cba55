#include "mapview/fields.h"

#include <algorithm>
#include <string>

#include "support/catch.h"

using namespace cubist;
using namespace cubist::mapview;

namespace {

/// Rows from the top, a kernel a letter; '.' is a gap.
CellMap drawn(const std::vector<std::string>& rows) {
  CellMap map;
  map.axes.max_q_len = {1};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    map.axes.batch.push_back(static_cast<std::int32_t>(i + 1));
  }
  for (std::size_t i = 0; i < rows.front().size(); ++i) {
    map.axes.max_kv_len.push_back(static_cast<std::int32_t>(i + 1));
  }
  for (std::size_t i = rows.size(); i-- > 0;) {
    for (const char c : rows[i]) {
      map.cells.emplace_back();
      map.cells.back().kernel = c == '.' ? Cell::kNone : c - 'A';
    }
  }
  return map;
}

/// The rooms of a kernel: "row+rows,column+columns", rows from below.
std::vector<std::string> rooms(const CellMap& map, char kernel, double height = 1) {
  std::vector<std::string> found;
  for (const CellBox& box : rooms_of_fields(map, 0, 1, height)) {
    if (map.at(0, box.row, box.column).kernel != kernel - 'A') continue;
    found.push_back(std::to_string(box.row) + "+" + std::to_string(box.rows()) + "," +
                    std::to_string(box.column) + "+" + std::to_string(box.columns()));
  }
  std::sort(found.begin(), found.end());
  return found;
}

using Rooms = std::vector<std::string>;

}  // namespace

TEST_CASE("a field that is a rectangle is its own room, whatever lies beside it") {
  const CellMap map = drawn({"AAAB",  //
                             "AAAB",  //
                             "CCCC"});
  CHECK(rooms(map, 'A') == Rooms{"1+2,0+3"});
  CHECK(rooms(map, 'B') == Rooms{"1+2,3+1"});
  CHECK(rooms(map, 'C') == Rooms{"0+1,0+4"});
}

TEST_CASE("fields of one kernel that do not touch are two, diagonals do not touch") {
  const CellMap map = drawn({"ABA",  //
                             "BAB"});
  CHECK(rooms(map, 'A') == Rooms{"0+1,1+1", "1+1,0+1", "1+1,2+1"});
  CHECK(rooms(map, 'B').size() == 3);
}

TEST_CASE("a bent field has one room, where its letter fits best") {
  const CellMap map = drawn({"AABBBB",  //
                             "AABBBB",  //
                             "AAAAAA",  //
                             "AAAAAA",  //
                             "AAAAAA"});
  CHECK(rooms(map, 'A') == Rooms{"0+3,0+6"});
  // Flat cells: the upright part is as wide as it was, the lying one much lower.
  CHECK(rooms(map, 'A', 0.4) == Rooms{"0+5,0+2"});
}

TEST_CASE("every cell's field has a room inside it, and the whole map may be one") {
  const CellMap map = drawn({"AAAAABBBBB", "ACCCABBDBB", "ACACABDDDB", "ACCCABBDBB", "AAAAABB.BB"});
  for (const CellBox& box : rooms_of_fields(map, 0, 1, 1)) {
    for (std::size_t row = box.row; row < box.end_row; ++row) {
      for (std::size_t column = box.column; column < box.end_column; ++column) {
        CHECK(look_alike(map.at(0, row, column), map.at(0, box.row, box.column)));
      }
    }
  }
  CHECK(rooms_of_fields(map, 0, 1, 1).size() == 6);
  CHECK(rooms(drawn({"AA", "AA"}), 'A') == Rooms{"0+2,0+2"});
}

TEST_CASE("a fallback is another field than the rules' own choice of the same kernel") {
  CellMap map = drawn({"AAA"});
  map.cells[2].fallback = FallbackReason::kRuleFindsNoKernel;
  CHECK(rooms(map, 'A') == Rooms{"0+1,0+2", "0+1,2+1"});
}
