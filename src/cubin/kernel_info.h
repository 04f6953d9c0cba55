#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>

#include "base/result.h"
#include "cubin/cubin_file.h"
#include "cubin/elf_file.h"

namespace cubist {

/// Fills an entry's launch facts (parameters, threads, cluster, two-CTA flag) from its own
/// .nv.info section.
/// errors  kIntegrity: records that are broken, occur twice or contradict each other
Status read_kernel_info(const ElfSection& info, std::string_view file, CubinEntry& entry);

/// Registers per thread by symbol index, from the .nv.info section of the whole file.
Result<std::unordered_map<std::uint32_t, std::uint32_t>> read_register_counts(
    const ElfFile& elf, std::string_view file);

}  // namespace cubist
