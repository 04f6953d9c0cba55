#include "cubin/cubin_file.h"

#include <algorithm>
#include <unordered_map>

#include "cubin/cubin_arch.h"
#include "cubin/elf_file.h"
#include "cubin/kernel_info.h"
#include "cubin/smem_size_entry.h"

// A kernel NAME is a function symbol with bit 4 of `other`, and lies in these sections:
//
//   .text.NAME          its code                      (the symbol's section)
//   .nv.info.NAME       its launch facts              (info = index of .text.NAME)
//   .nv.shared.NAME     no bytes in the file; size = static shared memory (the same info)
//   .nv.constant0.NAME  what constant bank 0 is filled with before a launch; not needed here

namespace cubist {
namespace {

constexpr std::uint8_t kFunctionSymbol = 2;
constexpr std::uint8_t kKernelMark = 0x10;
// From sm_90 on the first KiB of shared memory is the system's and counted in .nv.shared.NAME.
constexpr std::uint16_t kFirstSmWithReservedSmem = 90;
constexpr std::uint64_t kReservedSmemBytes = 1024;

bool is_graphic(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

/// Sections that belong to one kernel's code section.
struct KernelSections {
  const ElfSection* info = nullptr;
  const ElfSection* shared = nullptr;
};

using SectionsByCode = std::unordered_map<std::uint32_t, KernelSections>;

Result<SectionsByCode> group_sections(const ElfFile& elf, std::string_view file) {
  SectionsByCode by_code;
  for (const ElfSection& section : elf.sections) {
    const bool info = section.type == kElfCudaInfo && section.name.starts_with(".nv.info.");
    const bool shared = section.type == kElfNoBits && section.name.starts_with(".nv.shared.") &&
                        !section.name.starts_with(".nv.shared.reserved.");
    if (!info && !shared) continue;
    if (section.info >= elf.sections.size()) {
      return broken_cubin(file, "{} belongs to section {} of {}", section.name, section.info,
                          elf.sections.size());
    }
    KernelSections& kernel = by_code[section.info];
    const ElfSection*& place = info ? kernel.info : kernel.shared;
    if (place != nullptr) {
      return broken_cubin(file, "{} and {} belong to the same kernel", place->name, section.name);
    }
    place = &section;
  }
  return by_code;
}

/// The section must be called `prefix` + NAME: a file that mixes kernels up says so in two places.
Status check_name(const ElfSection& section, std::string_view prefix, std::string_view kernel,
                  std::string_view file) {
  const std::string_view found = section.name;
  if (found.starts_with(prefix) && found.substr(prefix.size()) == kernel) return {};
  return broken_cubin(file, "kernel '{}' uses section {}", kernel, found);
}

Status read_static_smem(const ElfSection& shared, SmArch arch, std::string_view file,
                        CubinEntry& entry) {
  CUBIST_RETURN_IF_ERROR(check_name(shared, ".nv.shared.", entry.name, file));
  const std::uint64_t reserved = arch.sm >= kFirstSmWithReservedSmem ? kReservedSmemBytes : 0;
  if (shared.size < reserved) {
    return broken_cubin(file, "{} has {} bytes, fewer than the {} the system reserves", shared.name,
                        shared.size, reserved);
  }
  entry.static_smem = shared.size - reserved;
  return {};
}

/// The bytes of the entry's code. The symbol must fill its section: nothing hides behind it.
Result<std::span<const std::uint8_t>> code_of(const ElfFile& elf, const ElfSymbol& symbol,
                                              std::string_view file) {
  if (symbol.section >= elf.sections.size()) {
    return broken_cubin(file, "kernel '{}' lies in no section", symbol.name);
  }
  const ElfSection& text = elf.sections[symbol.section];
  CUBIST_RETURN_IF_ERROR(check_name(text, ".text.", symbol.name, file));
  if (symbol.value > text.bytes.size() || text.bytes.size() - symbol.value < symbol.size) {
    return broken_cubin(file, "kernel '{}' ({} bytes at {}) runs past the {} bytes of {}",
                        symbol.name, symbol.size, symbol.value, text.bytes.size(), text.name);
  }
  return text.bytes.subspan(static_cast<std::size_t>(symbol.value),
                            static_cast<std::size_t>(symbol.size));
}

Result<CubinEntry> read_entry(const ElfFile& elf, const ElfSymbol& symbol,
                              const SectionsByCode& by_code, SmArch arch, std::string_view file) {
  if (symbol.name.empty() || !is_graphic(symbol.name)) {
    return broken_cubin(file, "the name of a kernel is empty or has unprintable characters");
  }
  CubinEntry entry;
  entry.name = symbol.name;
  CUBIST_ASSIGN_OR_RETURN(const auto code, code_of(elf, symbol, file));
  entry.code_bytes = code.size();
  const auto sections = by_code.find(symbol.section);
  if (sections == by_code.end() || sections->second.info == nullptr) {
    return broken_cubin(file, "kernel '{}' has no .nv.info section", entry.name);
  }
  CUBIST_RETURN_IF_ERROR(check_name(*sections->second.info, ".nv.info.", entry.name, file));
  CUBIST_RETURN_IF_ERROR(read_kernel_info(*sections->second.info, file, entry));
  if (const ElfSection* shared = sections->second.shared; shared != nullptr) {
    CUBIST_RETURN_IF_ERROR(read_static_smem(*shared, arch, file, entry));
  }
  return entry;
}

/// The file's kernels by name; `symbols` and `cubin.entries` run side by side.
struct Kernels {
  std::vector<const ElfSymbol*> symbols;
  std::unordered_map<std::string_view, std::size_t> by_name;
};

/// Marks the GetSmemSize entries, and gives what they say to the kernels they belong to.
Status match_smem_size_entries(const ElfFile& elf, const Kernels& kernels, std::string_view file,
                               CubinFile& cubin) {
  for (std::size_t i = 0; i < cubin.entries.size(); ++i) {
    std::string_view kernel_name = kernels.symbols[i]->name;
    if (!kernel_name.ends_with(kSmemSizeSuffix)) continue;
    kernel_name.remove_suffix(kSmemSizeSuffix.size());
    const auto kernel = kernels.by_name.find(kernel_name);
    if (kernel == kernels.by_name.end()) continue;
    cubin.entries[i].is_smem_size_entry = true;
    CUBIST_ASSIGN_OR_RETURN(const auto code, code_of(elf, *kernels.symbols[i], file));
    cubin.entries[kernel->second].dynamic_smem = smem_size_constant(code);
  }
  return {};
}

}  // namespace

const CubinEntry* CubinFile::find(std::string_view entry_name) const {
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const CubinEntry& entry) {
    return entry.name == entry_name;
  });
  return found == entries.end() ? nullptr : &*found;
}

std::vector<const CubinEntry*> CubinFile::kernels() const {
  std::vector<const CubinEntry*> out;
  for (const CubinEntry& entry : entries) {
    if (!entry.is_smem_size_entry) out.push_back(&entry);
  }
  return out;
}

Result<CubinFile> parse_cubin(std::span<const std::uint8_t> bytes, std::string_view name) {
  CUBIST_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::parse(bytes, name));
  CUBIST_ASSIGN_OR_RETURN(CubinArch arch, read_cubin_arch(elf, name));
  CUBIST_ASSIGN_OR_RETURN(const auto registers, read_register_counts(elf, name));
  CUBIST_ASSIGN_OR_RETURN(const SectionsByCode by_code, group_sections(elf, name));

  CubinFile cubin;
  cubin.arch = arch.arch;
  cubin.arch_is_exact = arch.exact;
  cubin.tool_release = std::move(arch.tool_release);
  cubin.size_bytes = bytes.size();
  Kernels kernels;
  for (std::uint32_t i = 0; i < elf.symbols.size(); ++i) {
    const ElfSymbol& symbol = elf.symbols[i];
    if (symbol.type != kFunctionSymbol || (symbol.other & kKernelMark) == 0) continue;
    if (!kernels.by_name.emplace(symbol.name, cubin.entries.size()).second) {
      return broken_cubin(name, "there are two kernels '{}'", symbol.name);
    }
    CUBIST_ASSIGN_OR_RETURN(CubinEntry entry, read_entry(elf, symbol, by_code, cubin.arch, name));
    if (const auto found = registers.find(i); found != registers.end()) {
      entry.registers = found->second;
    }
    cubin.entries.push_back(std::move(entry));
    kernels.symbols.push_back(&symbol);
  }
  if (cubin.entries.empty()) return broken_cubin(name, "it has no kernel");
  CUBIST_RETURN_IF_ERROR(match_smem_size_entries(elf, kernels, name, cubin));
  return cubin;
}

std::string arch_text(const CubinFile& cubin) {
  const std::string text = to_string(cubin.arch);
  return cubin.arch_is_exact ? text : text + "|" + text + "f";
}

}  // namespace cubist
