#include "base/count.h"

#include "support/catch.h"

namespace cubist {

TEST_CASE("a count is a whole number, a k behind it stands for 1,024") {
  CHECK(parse_count("0") == 0);
  CHECK(parse_count("-3") == -3);
  CHECK(parse_count("4096") == 4096);
  CHECK(parse_count("32k") == 32768);
  CHECK(parse_count("1K") == 1024);
  CHECK(parse_count("9223372036854775807") == INT64_MAX);
  CHECK(parse_count("-9007199254740992k") == INT64_MIN);
}

TEST_CASE("what is no count, or too large for one, is none") {
  for (const std::string_view text : {"", "k", "-", "1m", "1 k", "1.5k", "kk", "1kk", "+1",
                                      "9223372036854775808", "9007199254740992k"}) {
    INFO(text);
    CHECK_FALSE(parse_count(text).has_value());
  }
}

}  // namespace cubist
