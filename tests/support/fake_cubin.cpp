#include "support/fake_cubin.h"

#include <elf.h>

#include <cstring>

namespace cubist::test {
namespace {

constexpr std::uint16_t kMachineCuda = 190;

template <class T>
void append(std::vector<std::uint8_t>& bytes, const T* values, std::size_t count) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(values);
  bytes.insert(bytes.end(), from, from + count * sizeof(T));
}

}  // namespace

std::vector<std::uint8_t> fake_cubin(int sm, const std::vector<std::string>& functions) {
  // header | section headers: null, names, symbols | names | symbols
  std::string names(1, '\0');
  std::vector<Elf64_Sym> symbols(1);
  for (const std::string& function : functions) {
    Elf64_Sym symbol{};
    symbol.st_name = static_cast<Elf64_Word>(names.size());
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
    symbols.push_back(symbol);
    names += function + '\0';
  }
  while (names.size() % 8 != 0) names += '\0';

  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_machine = kMachineCuda;
  header.e_flags = static_cast<Elf64_Word>(sm) << 8;
  header.e_shoff = sizeof(Elf64_Ehdr);
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;

  Elf64_Shdr sections[3] = {};
  sections[1].sh_type = SHT_STRTAB;
  sections[1].sh_offset = sizeof(header) + sizeof(sections);
  sections[1].sh_size = names.size();
  sections[2].sh_type = SHT_SYMTAB;
  sections[2].sh_offset = sections[1].sh_offset + names.size();
  sections[2].sh_size = symbols.size() * sizeof(Elf64_Sym);
  sections[2].sh_link = 1;

  std::vector<std::uint8_t> bytes;
  append(bytes, &header, 1);
  append(bytes, sections, 3);
  append(bytes, names.data(), names.size());
  append(bytes, symbols.data(), symbols.size());
  return bytes;
}

}  // namespace cubist::test
