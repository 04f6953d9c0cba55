#include "support/fake_elf.h"

#include <elf.h>

#include <cstring>

namespace cubist::test {
namespace {

constexpr std::uint16_t kMachineCuda = 190;

const Elf64_Ehdr* header_of(const void* image) {
  const auto* header = static_cast<const Elf64_Ehdr*>(image);
  const bool elf = std::memcmp(header->e_ident, ELFMAG, SELFMAG) == 0;
  return elf && header->e_machine == kMachineCuda ? header : nullptr;
}

}  // namespace

std::optional<int> fake_elf_sm(const void* image) {
  const Elf64_Ehdr* header = header_of(image);
  if (header == nullptr) return std::nullopt;
  return static_cast<int>(header->e_flags >> 8 & 0xff);
}

bool fake_elf_has_function(const void* image, const std::string& name) {
  const Elf64_Ehdr* header = header_of(image);
  if (header == nullptr) return false;
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
  for (unsigned s = 0; s < header->e_shnum; ++s) {
    if (sections[s].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(bytes + sections[s].sh_offset);
    const auto* names =
        reinterpret_cast<const char*>(bytes + sections[sections[s].sh_link].sh_offset);
    for (std::uint64_t i = 0; i < sections[s].sh_size / sizeof(Elf64_Sym); ++i) {
      if (ELF64_ST_TYPE(symbols[i].st_info) == STT_FUNC && name == names + symbols[i].st_name) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace cubist::test
