#pragma once

#include <cstdint>

namespace cubist::test {

/// How often operator new was called in this program so far.
std::uint64_t allocation_count();

}  // namespace cubist::test
