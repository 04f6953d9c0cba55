#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cubist::test {

/// The smallest ELF file that the driver's stand-in takes for a cubin: machine, SM number in the
/// flags, and one function symbol a name. No code.
std::vector<std::uint8_t> fake_cubin(int sm, const std::vector<std::string>& functions);

}  // namespace cubist::test
