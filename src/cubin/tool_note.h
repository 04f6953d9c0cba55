#pragma once

#include <optional>
#include <string_view>

#include "base/result.h"
#include "cubin/elf_file.h"

namespace cubist {

/// What the tool that wrote a cubin left in .note.nv.tkinfo; empty texts if it left nothing.
struct ToolNote {
  std::string_view version;  ///< "Cuda compilation tools, release 12.9, V12.9.86"
  std::string_view options;  ///< "-arch sm_100f -m 64 "

  /// "12.9"
  std::string_view release() const;
  /// "sm_100f", the argument of -arch
  std::string_view arch() const;
};

/// errors  kIntegrity: a note or a text in it that runs out of the section
Result<ToolNote> read_tool_note(const ElfFile& elf, std::string_view name);

}  // namespace cubist
