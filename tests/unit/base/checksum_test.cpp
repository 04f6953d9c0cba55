#include "base/checksum.h"

#include <set>
#include <vector>

#include "support/catch.h"

namespace cubist {
namespace {

TEST_CASE("any bit, any length and any order of words gives another checksum") {
  std::vector<std::uint8_t> bytes(100, 0);
  std::set<std::uint64_t> seen;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    CHECK(seen.insert(checksum64(std::span(bytes).first(size))).second);
  }
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
    CHECK(seen.insert(checksum64(bytes)).second);
    bytes[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
  }
  bytes[0] = 1;
  bytes[40] = 2;
  const std::uint64_t before = checksum64(bytes);
  std::swap(bytes[0], bytes[40]);
  CHECK(checksum64(bytes) != before);
}

}  // namespace
}  // namespace cubist
