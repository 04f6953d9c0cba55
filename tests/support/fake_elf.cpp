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

std::optional<std::size_t> fake_elf_param_bytes(const void* image, const std::string& name) {
  constexpr std::uint8_t kParam = 0x17;       // the size of one parameter, in bits 18 to 31
  constexpr std::uint8_t kParamBytes = 0x19;  // of all, with what aligns the first
  std::optional<std::size_t> all;
  const Elf64_Ehdr* header = header_of(image);
  if (header == nullptr) return std::nullopt;
  const auto* bytes = static_cast<const std::uint8_t*>(image);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(bytes + header->e_shoff);
  const auto* names = reinterpret_cast<const char*>(bytes + sections[header->e_shstrndx].sh_offset);
  for (unsigned s = 0; s < header->e_shnum; ++s) {
    if (".nv.info." + name != names + sections[s].sh_name) continue;
    // Records: format, id, a 16-bit value, and where the format is 4 a payload of that length.
    const std::uint8_t* at = bytes + sections[s].sh_offset;
    const std::uint8_t* const end = at + sections[s].sh_size;
    while (end - at >= 4) {
      std::uint16_t value = 0;
      std::memcpy(&value, at + 2, sizeof(value));
      if (at[1] == kParam && value >= 12 && end - at >= 16) {
        std::uint32_t size = 0;
        std::memcpy(&size, at + 12, sizeof(size));
        return size >> 18;  // a driver copies a parameter's own bytes
      }
      if (at[1] == kParamBytes) all = value;
      at += 4 + (at[0] == 4 ? value : 0);
    }
  }
  return all;
}

}  // namespace cubist::test
