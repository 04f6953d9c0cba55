#include "workingset/box.h"

#include "support/catch.h"

using namespace cubist::workingset;

TEST_CASE("corners of a box, those of a flat one twice") {
  const Box box{{{{1, 4}, {2, 2}, {10, 20}}}};
  CHECK(box.low() == Point{1, 2, 10});
  CHECK(box.high() == Point{4, 2, 20});
  CHECK(box.corner(1) == Point{4, 2, 10});
  CHECK(box.corner(4) == Point{1, 2, 20});
  CHECK(box.first_alike(2) == 0);
  CHECK(box.first_alike(7) == 5);
  CHECK_FALSE(box.is_point());
  CHECK(Box{{{{1, 1}, {2, 2}, {3, 3}}}}.is_point());
}

TEST_CASE("the middle leaves something on both sides, and lengths are cut at multiples of 64") {
  for (const Dimension dimension : {kBatch, kMaxQLen, kMaxKvLen}) {
    for (std::int32_t first = 1; first < 300; first += 7) {
      for (std::int32_t last = first + 1; last < 2000; last += 13) {
        const std::int32_t end = middle({first, last}, dimension);
        REQUIRE(end >= first);
        REQUIRE(end < last);
      }
    }
    CHECK(middle({1, 2147483647}, dimension) >= 1);
    CHECK(middle({2147483646, 2147483647}, dimension) == 2147483646);
  }
  CHECK(middle({1, 131072}, kMaxKvLen) % 64 == 0);
  CHECK(middle({129, 256}, kMaxKvLen) % 64 == 0);
  CHECK(middle({1, 256}, kBatch) == 16);
}
