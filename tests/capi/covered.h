#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "support/catch.h"

namespace cubist::test {

/// Bytes of a struct.
struct Extent {
  std::size_t offset = 0;
  std::size_t size = 0;
};

/// Every byte of `Struct` behind struct_size is in some extent: a field that is added later, and
/// that no table of wrong values has, is found.
template <class Struct>
void check_covered(const std::vector<Extent>& extents) {
  std::vector<bool> covered(sizeof(Struct), false);
  std::fill_n(covered.begin(), sizeof(std::uint32_t), true);
  for (const Extent& extent : extents) {
    std::fill_n(covered.begin() + static_cast<std::ptrdiff_t>(extent.offset), extent.size, true);
  }
  for (std::size_t byte = 0; byte < covered.size(); ++byte) {
    INFO("byte " << byte);
    CHECK(covered[byte]);
  }
}

}  // namespace cubist::test
