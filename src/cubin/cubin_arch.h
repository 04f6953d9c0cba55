#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "cubin/elf_file.h"
#include "model/sm_arch.h"

namespace cubist {

struct CubinArch {
  SmArch arch;
  bool exact = true;         ///< see CubinFile::arch_is_exact
  std::string tool_release;  ///< "12.9"; empty if unknown
};

/// What a cubin was assembled for and by which release of the tools.
/// errors  kIntegrity: an ABI this reader does not know, a broken .nv.compat or .note.nv.tkinfo
Result<CubinArch> read_cubin_arch(const ElfFile& elf, std::string_view name);

}  // namespace cubist
