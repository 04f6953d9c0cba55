#include "base/hex.h"

#include <array>

#include "support/catch.h"

TEST_CASE("hex goes both ways and refuses everything else") {
  const std::array<std::uint8_t, 3> bytes = {0x00, 0xab, 0xff};
  CHECK(cubist::to_hex(bytes) == "00abff");
  std::array<std::uint8_t, 3> out{};
  CHECK(cubist::parse_hex("00ABff", out));
  CHECK(out == bytes);
  CHECK_FALSE(cubist::parse_hex("00abf", out));
  CHECK_FALSE(cubist::parse_hex("00abfff0", out));
  CHECK_FALSE(cubist::parse_hex("00abfg", out));
  CHECK_FALSE(cubist::parse_hex("", out));
}
