#include "cubin/elf_file.h"

#include <algorithm>
#include <optional>

#include "base/byte_reader.h"
#include "cubin/elf_overlap.h"

// A cubin is an ELF64 file, little-endian (System V ABI, chapters 4 and 5):
//
//   file header, 64 bytes       section header, 64 bytes   symbol, 24 bytes
//    0 u8[4] 7f "ELF"            0 u32 name                 0 u32 name
//    4 u8 class 2 (64 bits)      4 u32 type                 4 u8  type (bits 0-3), binding (4-7)
//    5 u8 data 1 (little)        8 u64 flags                5 u8  other: bit 4 = a kernel
//    6 u8 version 1             16 u64 address              6 u16 section
//    7 u8 OS ABI                24 u64 offset               8 u64 value
//    8 u8 ABI version           32 u64 size                16 u64 size
//   16 u16 type 2 (executable)  40 u32 link
//   18 u16 machine 190 (CUDA)   44 u32 info                segment, 56 bytes
//   20 u32 version              48 u64 alignment            0 u32 type
//   24 u64 entry                56 u64 entry size           8 u64 offset
//   32 u64 segments' offset                                32 u64 bytes in the file
//   40 u64 section headers' offset
//   48 u32 flags
//   52 u16 size of this header
//   54 u16 segment size, u16 number of segments
//   58 u16 section header size, u16 number of sections
//   62 u16 section of the section names
//
// There may be no segments at all, and sections, section headers and segments come in any order.

namespace cubist {
namespace {

constexpr std::uint64_t kHeaderBytes = 64;
constexpr std::uint64_t kSectionBytes = 64;
constexpr std::uint64_t kSegmentBytes = 56;
constexpr std::uint64_t kSymbolBytes = 24;
constexpr std::uint16_t kTypeExecutable = 2;
constexpr std::uint16_t kMachineCuda = 190;
constexpr std::uint32_t kTypeNull = 0;
constexpr std::uint32_t kTypeSymbols = 2;
constexpr std::uint32_t kTypeStrings = 3;
constexpr std::uint16_t kFirstReservedSection = 0xff00;

// Mangled names of templates reach some KiB. The limit keeps a table of names that are all one long
// text without an end from costing its size squared.
constexpr std::size_t kMaxNameBytes = std::size_t{64} << 10;

using Header = FixedRecord<kHeaderBytes>;

Status check_header(const Header& header, std::string_view name) {
  if (header.get<std::uint32_t, 0>() != 0x464c457f) {
    return broken_cubin(name, "it does not begin with the ELF magic");
  }
  if (header.get<std::uint8_t, 4>() != 2 || header.get<std::uint8_t, 5>() != 1 ||
      header.get<std::uint8_t, 6>() != 1) {
    return broken_cubin(name, "it is no 64-bit little-endian ELF file");
  }
  if (header.get<std::uint16_t, 18>() != kMachineCuda) {
    return broken_cubin(name, "its ELF machine is {}, not {} (CUDA)",
                        header.get<std::uint16_t, 18>(), kMachineCuda);
  }
  if (header.get<std::uint16_t, 16>() != kTypeExecutable) {
    return broken_cubin(name,
                        "its ELF type is {}, not {} (executable); a relocatable file has to be "
                        "linked first",
                        header.get<std::uint16_t, 16>(), kTypeExecutable);
  }
  if (header.get<std::uint16_t, 52>() != kHeaderBytes ||
      header.get<std::uint16_t, 58>() != kSectionBytes) {
    return broken_cubin(name, "its ELF header says headers of {} and {} bytes, not 64 and 64",
                        header.get<std::uint16_t, 52>(), header.get<std::uint16_t, 58>());
  }
  return {};
}

Status check_segments(const ByteReader& file, const Header& header, std::string_view name) {
  const std::uint16_t count = header.get<std::uint16_t, 56>();
  if (count == 0) return {};
  const std::uint64_t offset = header.get<std::uint64_t, 32>();
  if (header.get<std::uint16_t, 54>() != kSegmentBytes ||
      !file.slice(offset, count * kSegmentBytes)) {
    return broken_cubin(name, "its table of {} segments at byte {} does not fit into {} bytes",
                        count, offset, file.size());
  }
  for (std::uint16_t i = 0; i < count; ++i) {
    const auto segment = *file.record<kSegmentBytes>(offset + i * kSegmentBytes);
    if (!file.slice(segment.get<std::uint64_t, 8>(), segment.get<std::uint64_t, 32>())) {
      return broken_cubin(name, "segment {} runs past the file's end", i);
    }
  }
  return {};
}

/// The NUL-terminated name at `offset` of a string table.
std::optional<std::string_view> name_at(std::span<const std::uint8_t> strings,
                                        std::uint32_t offset) {
  if (offset >= strings.size()) return std::nullopt;
  const auto rest = strings.subspan(offset);
  return ByteReader(rest.first(std::min(rest.size(), kMaxNameBytes))).c_string(0);
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

Result<ElfSection> parse_section(const ByteReader& file, std::uint64_t at, std::uint16_t index,
                                 std::string_view name) {
  const auto header = *file.record<kSectionBytes>(at);
  ElfSection section;
  section.type = header.get<std::uint32_t, 4>();
  section.offset = header.get<std::uint64_t, 24>();
  section.size = header.get<std::uint64_t, 32>();
  section.link = header.get<std::uint32_t, 40>();
  section.info = header.get<std::uint32_t, 44>();
  if (section.type == kTypeNull || section.type == kElfNoBits) return section;
  const auto bytes = file.slice(section.offset, section.size);
  if (!bytes) {
    return broken_cubin(name, "section {} ({} bytes at {}) runs past the end of {} bytes", index,
                        section.size, section.offset, file.size());
  }
  section.bytes = *bytes;
  return section;
}

Result<std::vector<ElfSection>> parse_sections(const ByteReader& file, const Header& header,
                                               std::string_view name) {
  const std::uint64_t offset = header.get<std::uint64_t, 40>();
  const std::uint16_t count = header.get<std::uint16_t, 60>();
  const std::uint16_t names_index = header.get<std::uint16_t, 62>();
  if (count == 0 || !file.slice(offset, count * kSectionBytes)) {
    return broken_cubin(name, "its table of {} sections at byte {} does not fit into {} bytes",
                        count, offset, file.size());
  }
  std::vector<ElfSection> sections;
  sections.reserve(count);
  for (std::uint16_t i = 0; i < count; ++i) {
    CUBIST_ASSIGN_OR_RETURN(ElfSection section,
                            parse_section(file, offset + i * kSectionBytes, i, name));
    sections.push_back(section);
  }
  if (names_index >= count || sections[names_index].type != kTypeStrings) {
    return broken_cubin(name, "section {} of {}, said to hold the section names, holds no strings",
                        names_index, count);
  }
  const std::span<const std::uint8_t> names = sections[names_index].bytes;
  for (std::uint16_t i = 0; i < count; ++i) {
    const auto name_offset = *file.read<std::uint32_t>(offset + i * kSectionBytes);
    const auto section_name = name_at(names, name_offset);
    if (!section_name) {
      return broken_cubin(name, "the name of section {} runs out of the string table", i);
    }
    if (!is_printable(*section_name)) {
      return broken_cubin(name, "the name of section {} has unprintable characters", i);
    }
    sections[i].name = *section_name;
  }
  return sections;
}

Result<ElfSymbol> parse_symbol(const FixedRecord<kSymbolBytes>& record,
                               std::span<const std::uint8_t> strings, std::size_t num_sections,
                               std::uint64_t index, std::string_view name) {
  ElfSymbol symbol;
  const auto symbol_name = name_at(strings, record.get<std::uint32_t, 0>());
  if (!symbol_name) {
    return broken_cubin(name, "the name of symbol {} runs out of the string table", index);
  }
  symbol.name = *symbol_name;
  symbol.type = record.get<std::uint8_t, 4>() & 0x0f;
  symbol.other = record.get<std::uint8_t, 5>();
  symbol.section = record.get<std::uint16_t, 6>();
  symbol.value = record.get<std::uint64_t, 8>();
  symbol.size = record.get<std::uint64_t, 16>();
  if (symbol.section >= num_sections && symbol.section < kFirstReservedSection) {
    return broken_cubin(name, "symbol {} lies in section {} of {}", index, symbol.section,
                        num_sections);
  }
  return symbol;
}

Result<std::vector<ElfSymbol>> parse_symbols(const std::vector<ElfSection>& sections,
                                             std::string_view name) {
  const auto is_table = [](const ElfSection& section) { return section.type == kTypeSymbols; };
  const auto table = std::find_if(sections.begin(), sections.end(), is_table);
  if (table == sections.end()) return broken_cubin(name, "it has no symbol table");
  if (std::find_if(table + 1, sections.end(), is_table) != sections.end()) {
    return broken_cubin(name, "it has two symbol tables");
  }
  if (table->size % kSymbolBytes != 0) {
    return broken_cubin(name, "its symbol table has {} bytes, no multiple of {}", table->size,
                        kSymbolBytes);
  }
  if (table->link >= sections.size() || sections[table->link].type != kTypeStrings) {
    return broken_cubin(name, "section {}, said to hold the symbol names, holds no strings",
                        table->link);
  }
  const std::span<const std::uint8_t> strings = sections[table->link].bytes;
  const ByteReader reader(table->bytes);
  std::vector<ElfSymbol> symbols;
  symbols.reserve(table->bytes.size() / kSymbolBytes);
  for (std::uint64_t at = 0; at < reader.size(); at += kSymbolBytes) {
    CUBIST_ASSIGN_OR_RETURN(ElfSymbol symbol,
                            parse_symbol(*reader.record<kSymbolBytes>(at), strings, sections.size(),
                                         symbols.size(), name));
    symbols.push_back(symbol);
  }
  return symbols;
}

}  // namespace

Result<ElfFile> ElfFile::parse(std::span<const std::uint8_t> bytes, std::string_view name) {
  const ByteReader file(bytes);
  const std::optional<Header> header = file.record<kHeaderBytes>(0);
  if (!header) {
    return broken_cubin(name, "it has {} bytes, fewer than an ELF header", bytes.size());
  }
  CUBIST_RETURN_IF_ERROR(check_header(*header, name));
  CUBIST_RETURN_IF_ERROR(check_segments(file, *header, name));
  ElfFile elf;
  elf.os_abi = header->get<std::uint8_t, 7>();
  elf.abi_version = header->get<std::uint8_t, 8>();
  elf.version = header->get<std::uint32_t, 20>();
  elf.flags = header->get<std::uint32_t, 48>();
  CUBIST_ASSIGN_OR_RETURN(elf.sections, parse_sections(file, *header, name));
  const ElfTables tables{header->get<std::uint64_t, 40>(), elf.sections.size() * kSectionBytes,
                         header->get<std::uint64_t, 32>(),
                         header->get<std::uint16_t, 56>() * kSegmentBytes};
  CUBIST_RETURN_IF_ERROR(check_overlaps(elf.sections, tables, name));
  CUBIST_ASSIGN_OR_RETURN(elf.symbols, parse_symbols(elf.sections, name));
  return elf;
}

}  // namespace cubist
