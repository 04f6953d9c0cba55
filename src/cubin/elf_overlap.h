#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cubin/elf_file.h"

namespace cubist {

/// Where an ELF file's two tables lie, in bytes.
struct ElfTables {
  std::uint64_t sections_offset = 0;
  std::uint64_t sections_size = 0;
  std::uint64_t segments_offset = 0;
  std::uint64_t segments_size = 0;
};

/// Refuses files in which one byte has two meanings: sections that overlap each other, the ELF
/// header or the tables. The compiler's own sections (.nv.merc..., .nv.capmerc...) are left alone:
/// they share bytes with others by design, and nothing here reads them.
Status check_overlaps(const std::vector<ElfSection>& sections, const ElfTables& tables,
                      std::string_view name);

}  // namespace cubist
