#include "workingset/range.h"

#include "support/catch.h"

using namespace cubist::workingset;

namespace {

std::vector<Range> read(std::string_view text) {
  auto ranges = parse_ranges("batch", text);
  if (!ranges) FAIL(ranges.error().message());
  return *ranges;
}

std::string error_of(std::string_view text) {
  const auto ranges = parse_ranges("batch", text);
  return ranges ? "" : ranges.error().message();
}

}  // namespace

TEST_CASE("ranges are read from numbers, ends and lists") {
  CHECK(read("8") == std::vector<Range>{{8, 8}});
  CHECK(read("1..256") == std::vector<Range>{{1, 256}});
  CHECK(read("..131072") == std::vector<Range>{{1, 131072}});
  CHECK(read("16,1..8,32") == std::vector<Range>{{1, 8}, {16, 16}, {32, 32}});
  CHECK(read("1..8,9..16,12..20") == std::vector<Range>{{1, 20}});
  CHECK(read("2147483647") == std::vector<Range>{{2147483647, 2147483647}});
  CHECK(read("1k..32k") == std::vector<Range>{{1024, 32768}});
  CHECK(read("..4K,8k") == std::vector<Range>{{1, 4096}, {8192, 8192}});
  CHECK(to_string(read("16,1..8")) == "1..8,16");
}

TEST_CASE("ranges that are empty, inverted or no numbers are refused by field and text") {
  for (const std::string_view text :
       {"", ",", "0", "-1", "8..", "..", "9..3", "x", "1..x", "1..2..3", "1,,2", "2147483648",
        "99999999999999999999", "1.5", " 1", "0..4", "k", "1kk", "2097152k"}) {
    INFO(text);
    CHECK(error_of(text).find("batch '") == 0);
  }
  CHECK(error_of("9..3").find("ends before it starts") != std::string::npos);
  CHECK(error_of("8..").find("has no end") != std::string::npos);
}

TEST_CASE("ranges made otherwise are checked") {
  CHECK(validate_ranges("batch", {{1, 4}, {6, 6}}));
  CHECK_FALSE(validate_ranges("batch", {}));
  CHECK_FALSE(validate_ranges("batch", {{0, 4}}));
  CHECK_FALSE(validate_ranges("batch", {{4, 3}}));
  CHECK_FALSE(validate_ranges("batch", {{1, 4}, {4, 5}}));
}

TEST_CASE("cutting keeps every value once") {
  CHECK(cut({1, 10}, {}) == std::vector<Range>{{1, 10}});
  CHECK(cut({1, 10}, {4}) == std::vector<Range>{{1, 4}, {5, 10}});
  CHECK(cut({1, 10}, {4, 4, 2}) == std::vector<Range>{{1, 2}, {3, 4}, {5, 10}});
  CHECK(cut({1, 10}, {0, 10, 11, 500}) == std::vector<Range>{{1, 10}});
  CHECK(cut({7, 7}, {7, 6}) == std::vector<Range>{{7, 7}});
}
