#include "launcher/elf_extent.h"

#include "base/byte_reader.h"

namespace cubist::launcher {
namespace {

// ELF64 header, little endian:
//   0 magic 7f 'E' 'L' 'F'   4 class (2 = 64-bit)   5 data (1 = little endian)
//   32 u64 program headers at   40 u64 section headers at
//   54 u16 bytes a program header (56)   56 u16 their number
//   58 u16 bytes a section header (64)   60 u16 their number
// Section header: 4 u32 type (8 = no bits in the file)   24 u64 offset   32 u64 size
// Source: System V ABI, chapter 4; ELF-64 Object File Format.
constexpr std::uint64_t kHeaderBytes = 64;
constexpr std::uint64_t kSectionHeaderBytes = 64;
constexpr std::uint64_t kProgramHeaderBytes = 56;
constexpr std::uint32_t kNoBits = 8;

struct Table {
  std::uint64_t offset = 0;
  std::uint64_t count = 0;
};

Status check_inside(std::uint64_t offset, std::uint64_t size, std::uint64_t total,
                    std::string_view what, std::string_view name) {
  if (offset <= total && size <= total - offset) return {};
  return fail(StatusCode::kIntegrity,
              "'{}': {} at offset {} with {} bytes ends beyond the file's {} bytes", name, what,
              offset, size, total);
}

Status check_sections(const ByteReader& reader, const Table& sections, std::string_view name) {
  for (std::uint64_t i = 0; i < sections.count; ++i) {
    const std::uint64_t header = sections.offset + i * kSectionHeaderBytes;
    const auto type = reader.read<std::uint32_t>(header + 4);
    const auto offset = reader.read<std::uint64_t>(header + 24);
    const auto size = reader.read<std::uint64_t>(header + 32);
    if (!type || !offset || !size) {
      return fail(StatusCode::kIntegrity, "'{}': section header {} is cut off", name, i);
    }
    if (*type == kNoBits) continue;
    CUBIST_RETURN_IF_ERROR(check_inside(*offset, *size, reader.size(), "a section", name));
  }
  return {};
}

}  // namespace

Status check_elf_extent(std::span<const std::uint8_t> bytes, std::string_view name) {
  const ByteReader reader(bytes);
  const auto magic = reader.read<std::uint32_t>(0);
  const auto class_and_data = reader.read<std::uint16_t>(4);
  if (bytes.size() < kHeaderBytes || magic != 0x464c457fU || class_and_data != 0x0102U) {
    return fail(StatusCode::kIntegrity, "'{}' is no 64-bit little-endian ELF file", name);
  }
  const Table programs{*reader.read<std::uint64_t>(32), *reader.read<std::uint16_t>(56)};
  const Table sections{*reader.read<std::uint64_t>(40), *reader.read<std::uint16_t>(60)};
  if (sections.count == 0) {
    return fail(StatusCode::kIntegrity, "'{}' has no sections, so no kernel", name);
  }
  const auto section_bytes = reader.read<std::uint16_t>(58);
  const auto program_bytes = reader.read<std::uint16_t>(54);
  if (section_bytes != kSectionHeaderBytes ||
      (programs.count > 0 && program_bytes != kProgramHeaderBytes)) {
    return fail(StatusCode::kIntegrity, "'{}': headers of {} and {} bytes, expected {} and {}",
                name, *section_bytes, *program_bytes, kSectionHeaderBytes, kProgramHeaderBytes);
  }
  CUBIST_RETURN_IF_ERROR(check_inside(programs.offset, programs.count * kProgramHeaderBytes,
                                      bytes.size(), "the program header table", name));
  CUBIST_RETURN_IF_ERROR(check_inside(sections.offset, sections.count * kSectionHeaderBytes,
                                      bytes.size(), "the section header table", name));
  return check_sections(reader, sections, name);
}

}  // namespace cubist::launcher
