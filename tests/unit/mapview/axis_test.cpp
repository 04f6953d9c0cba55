#include "mapview/axis.h"

#include <algorithm>

#include "support/catch.h"

using cubist::mapview::pick_values;
using cubist::workingset::Range;
using Values = std::vector<std::int32_t>;

TEST_CASE("ranges that fit are shown whole") {
  CHECK(pick_values({{1, 4}}, 10) == Values{1, 2, 3, 4});
  CHECK(pick_values({{1, 2}, {8, 9}}, 4) == Values{1, 2, 8, 9});
  CHECK(pick_values({{7, 7}}, 1) == Values{7});
  CHECK(pick_values({}, 5).empty());
  CHECK(pick_values({{1, 4}}, 0).empty());
}

TEST_CASE("longer ranges are spread by ratio, ends included, within the ranges") {
  for (const std::size_t count : {std::size_t{2}, std::size_t{10}, std::size_t{96}}) {
    const Values values = pick_values({{1, 131072}}, count);
    CHECK(values.size() <= count);
    CHECK(values.size() > count / 2);
    CHECK(values.front() == 1);
    CHECK(values.back() == 131072);
    CHECK(std::is_sorted(values.begin(), values.end()));
    CHECK(std::adjacent_find(values.begin(), values.end()) == values.end());
  }
  for (const std::int32_t value : pick_values({{1, 4}, {1000, 9000}}, 20)) {
    CHECK((value <= 4 || (value >= 1000 && value <= 9000)));
  }
  CHECK(pick_values({{1, 2147483647}}, 12).back() == 2147483647);
}
