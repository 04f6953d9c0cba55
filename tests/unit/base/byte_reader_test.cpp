#include "base/byte_reader.h"

#include <array>
#include <limits>

#include "support/catch.h"

using cubist::ByteReader;

TEST_CASE("a byte reader gives little-endian numbers inside its bytes and nothing outside") {
  const std::array<std::uint8_t, 5> bytes = {0x01, 0x02, 0x03, 0x04, 0x05};
  const ByteReader reader(bytes);
  CHECK(reader.read<std::uint32_t>(0) == 0x04030201U);
  CHECK(reader.read<std::uint16_t>(3) == 0x0504U);
  CHECK_FALSE(reader.read<std::uint16_t>(4).has_value());
  CHECK_FALSE(reader.read<std::uint8_t>(5).has_value());
  CHECK_FALSE(reader.read<std::uint8_t>(std::numeric_limits<std::uint64_t>::max()).has_value());
}

TEST_CASE("a slice whose end overflows is refused") {
  const std::array<std::uint8_t, 4> bytes{};
  const ByteReader reader(bytes);
  CHECK(reader.slice(4, 0).has_value());
  CHECK_FALSE(reader.slice(2, 3).has_value());
  CHECK_FALSE(reader.slice(2, std::numeric_limits<std::uint64_t>::max()).has_value());
}

TEST_CASE("a string must end inside the bytes") {
  const std::array<std::uint8_t, 4> bytes = {'a', 0, 'b', 'c'};
  const ByteReader reader(bytes);
  CHECK(reader.c_string(0) == "a");
  CHECK(reader.c_string(1) == "");
  CHECK_FALSE(reader.c_string(2).has_value());
  CHECK_FALSE(reader.c_string(4).has_value());
}
