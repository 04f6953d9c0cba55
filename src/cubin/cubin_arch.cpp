#include "cubin/cubin_arch.h"

#include "cubin/nv_info.h"
#include "cubin/tool_note.h"

// Where the architecture lies depends on the ELF header's OS ABI and ABI version:
//
//   OS ABI 0x33, version 7: tools up to 12.9 for sm_90 and below
//     e_flags bits 0-7 (again 16-23) SM number, bit 11 specific ("a"); e_version = release, 129
//     = 12.9
//   OS ABI 0x41, version 8: tools from 12.8 on for sm_100 and up, all architectures from 13.0 on
//     e_flags bits 8-15 SM number, bit 3 specific; tools from 13.0 on leave bit 3 clear and say it
//     in .nv.compat, record 0x09: 1 = specific
//
// A family (sm_100f) has no bit of its own; only the tool's own command line, kept in
// .note.nv.tkinfo by some tools, tells it from plain sm_100. Below sm_100 there are no families.
// Found by assembling for each of these with releases 12.0, 12.4, 12.8, 12.9, 13.0 and 13.5.

namespace cubist {
namespace {

constexpr std::uint8_t kCompatSpecific = 0x09;
constexpr std::uint16_t kFirstSmWithFamilies = 100;

Result<bool> compat_says_specific(const ElfFile& elf, std::string_view name) {
  bool specific = false;
  for (const ElfSection& section : elf.sections) {
    if (section.name != ".nv.compat") continue;
    NvInfoReader records(section.bytes, name, section.name);
    while (true) {
      CUBIST_ASSIGN_OR_RETURN(const std::optional<NvInfoRecord> record, records.next());
      if (!record) break;
      if (record->id != kCompatSpecific || record->format != 2) continue;
      specific = (record->value & 0xff) == 1;
    }
  }
  return specific;
}

CubinArch arch_of_abi_7(const ElfFile& elf) {
  CubinArch out;
  out.arch.sm = static_cast<std::uint16_t>(elf.flags & 0xff);
  if ((elf.flags & 0x800) != 0) out.arch.kind = SmArch::Kind::kSpecific;
  if (elf.version >= 10 && elf.version < 1000) {
    out.tool_release = fmt::format("{}.{}", elf.version / 10, elf.version % 10);
  }
  return out;
}

Result<CubinArch> arch_of_abi_8(const ElfFile& elf, std::string_view name) {
  CubinArch out;
  CUBIST_ASSIGN_OR_RETURN(const bool specific, compat_says_specific(elf, name));
  CUBIST_ASSIGN_OR_RETURN(const ToolNote note, read_tool_note(elf, name));
  out.tool_release = note.release();
  out.arch.sm = static_cast<std::uint16_t>(elf.flags >> 8 & 0xff);
  if (specific || (elf.flags & 0x8) != 0) {
    out.arch.kind = SmArch::Kind::kSpecific;
  } else if (out.arch.sm >= kFirstSmWithFamilies) {
    const std::optional<SmArch> asked_for = parse_sm_arch(note.arch());
    const bool usable =
        asked_for && asked_for->sm == out.arch.sm && asked_for->kind != SmArch::Kind::kSpecific;
    if (usable) out.arch.kind = asked_for->kind;
    out.exact = usable;
  }
  return out;
}

}  // namespace

Result<CubinArch> read_cubin_arch(const ElfFile& elf, std::string_view name) {
  CubinArch out;
  if (elf.os_abi == 0x33 && elf.abi_version == 7) {
    out = arch_of_abi_7(elf);
  } else if (elf.os_abi == 0x41 && elf.abi_version == 8) {
    CUBIST_ASSIGN_OR_RETURN(out, arch_of_abi_8(elf, name));
  } else {
    return broken_cubin(name,
                        "OS ABI {:#04x}, ABI version {} is unknown here (known: 0x33 with 7, 0x41 "
                        "with 8); a newer cubist may read it",
                        elf.os_abi, elf.abi_version);
  }
  if (out.arch.sm < 50) {
    return broken_cubin(name, "its flags {:#010x} name architecture sm_{}", elf.flags, out.arch.sm);
  }
  return out;
}

}  // namespace cubist
