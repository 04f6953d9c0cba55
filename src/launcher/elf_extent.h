#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace cubist::launcher {

/// Whether everything the ELF header points at lies inside `bytes`. cuModuleLoadData is given no
/// length and believes the header, so this comes first.
///
/// errors  kIntegrity: no 64-bit little-endian ELF, or a table or section beyond the end; `name` is
///         what messages call the file
Status check_elf_extent(std::span<const std::uint8_t> bytes, std::string_view name);

}  // namespace cubist::launcher
