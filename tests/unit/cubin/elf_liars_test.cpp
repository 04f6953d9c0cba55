#include "refusal.h"
#include "support/byte_writer.h"
#include "support/synthetic_cubin.h"

// Files that lie about their ELF container: each is refused with a sentence that names the file and
// the lie.

namespace cubist {
namespace {

using test::CubinImage;
using test::make_cubin;
using test::patch;

using Liar = test::Liar<CubinImage>;

void check_refused(const std::vector<Liar>& liars) { test::check_refused(make_cubin(), liars); }

constexpr std::size_t kOffset = 24, kSize = 32, kLink = 40, kInfo = 44;  // in a section header

TEST_CASE("a lie in the ELF header is refused and named") {
  check_refused({
      {"an empty file", [](CubinImage& c) { c.bytes.clear(); }, "it has 0 bytes"},
      {"half a header", [](CubinImage& c) { c.bytes.resize(63); }, "it has 63 bytes"},
      {"other magic", [](CubinImage& c) { c.bytes[0] = 'M'; }, "ELF magic"},
      {"32 bits", [](CubinImage& c) { c.bytes[4] = 1; }, "64-bit"},
      {"big endian", [](CubinImage& c) { c.bytes[5] = 2; }, "little-endian"},
      {"another ELF version", [](CubinImage& c) { c.bytes[6] = 2; }, "64-bit"},
      {"an x86 program", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 18, 62); },
       "machine is 62"},
      {"a relocatable file", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 16, 1); },
       "linked first"},
      {"an unknown OS ABI", [](CubinImage& c) { c.bytes[7] = 0; }, "OS ABI 0x00, ABI version 8"},
      {"an unknown ABI version", [](CubinImage& c) { c.bytes[8] = 9; }, "ABI version 9"},
      {"no architecture", [](CubinImage& c) { patch<std::uint32_t>(c.bytes, 48, 2); }, "sm_0"},
      {"another header size", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 52, 52); },
       "52 and 64"},
      {"another section header size", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 58, 40); },
       "64 and 40"},
      {"sections beyond the file",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, 40, 1u << 30); }, "table of"},
      {"a section table that overflows",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, 40, ~0ull - 63); }, "does not fit"},
      {"a huge count of sections", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 60, 0xffff); },
       "table of 65535 sections"},
      {"no sections", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 60, 0); },
       "table of 0 sections"},
      {"names in a section that is not there",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 62, 0xffff); }, "section 65535 of"},
      {"names in a section without strings",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 62, 3); }, "section 3 of"},
      {"segments beyond the file", [](CubinImage& c) { patch<std::uint64_t>(c.bytes, 32, ~0ull); },
       "table of 1 segments"},
      {"a huge count of segments", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 56, 0xffff); },
       "table of 65535 segments"},
      {"another segment size", [](CubinImage& c) { patch<std::uint16_t>(c.bytes, 54, 32); },
       "table of 1 segments"},
      {"a segment past the end",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.segments + 32, 57); },
       "segment 0 runs past"},
      {"a segment that overflows",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.segments + 8, ~0ull - 8); },
       "segment 0 runs past"},
  });
}

TEST_CASE("a lie about sections is refused and named") {
  check_refused({
      {"a section past the end",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".symtab") + kSize, 1u << 20);
       },
       "section 3 (1048576 bytes"},
      {"a section whose end overflows",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".symtab") + kOffset, ~0ull - 47);
       },
       "runs past the end"},
      {"a name past the names",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(".symtab"), 0x00ffffff); },
       "the name of section 3 runs out"},
      {"names without an end",
       [](CubinImage& c) {
         const std::size_t header = c.header_of(".shstrtab");
         std::uint64_t size = 0;
         for (const std::string& name : c.sections) size += name.size() + 1;
         patch<std::uint64_t>(c.bytes, header + kSize, size - 1);
       },
       "runs out of the string table"},
      {"a name with an escape sequence",
       [](CubinImage& c) { c.bytes[c.bytes_of(".shstrtab") + 3] = 0x1b; }, "unprintable"},
      {"two sections in one place",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".strtab") + kOffset, c.bytes_of(".symtab"));
       },
       "overlap"},
      {"a section in the ELF header",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".text.kernel") + kOffset, 0);
       },
       "the ELF header and .text.kernel overlap"},
      {"a section in the section headers",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".nv.compat") + kOffset, c.section_headers + 8);
       },
       "the section headers and .nv.compat overlap"},
      {"tables in one place",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, 32, c.section_headers); }, "overlap"},
  });
}

TEST_CASE("the compiler's own sections may share bytes with others") {
  // The reader does not look into them, and real files do this.
  CubinImage image = make_cubin();
  const std::size_t names = image.bytes_of(".shstrtab");
  const std::string merc = ".nv.merc.x";
  const std::size_t shared = image.header_of(".nv.shared.kernel");
  std::uint32_t name_offset = 0;
  std::memcpy(&name_offset, &image.bytes[shared], 4);
  std::copy(merc.begin(), merc.end() + 1,
            image.bytes.begin() + static_cast<std::ptrdiff_t>(names + name_offset));
  patch<std::uint32_t>(image.bytes, shared + 4, 1);
  patch<std::uint64_t>(image.bytes, shared + kOffset, image.bytes_of(".text.kernel"));
  patch<std::uint64_t>(image.bytes, shared + kSize, 64);
  const auto cubin = parse_cubin(image.bytes, "x.cubin");
  if (!cubin) FAIL(cubin.error().message());
}

TEST_CASE("a lie about symbols is refused and named") {
  check_refused({
      {"no symbol table",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(".symtab") + 4, 1); },
       "no symbol table"},
      {"two symbol tables",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(".nv.compat") + 4, 2); },
       "two symbol tables"},
      {"half a symbol",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.header_of(".symtab") + kSize, 47); },
       "no multiple of 24"},
      {"names in themselves",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(".symtab") + kLink, 3); },
       "section 3, said to hold the symbol names"},
      {"names in a section that is not there",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.header_of(".symtab") + kLink, ~0u); },
       "section 4294967295, said to hold the symbol names"},
      {"a name past the names",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.symbol_of("kernel"), 5000); },
       "the name of symbol 1 runs out"},
      {"a name without an end",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.header_of(".strtab") + kSize, 7); },
       "the name of symbol 1 runs out"},
      {"a section that is not there",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, c.symbol_of("kernel") + 6, 0xfe00); },
       "symbol 1 lies in section 65024"},
      {"a kernel outside all sections",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, c.symbol_of("kernel") + 6, 0xfff1); },
       "lies in no section"},
      {"a kernel in a section of another kind",
       [](CubinImage& c) { patch<std::uint16_t>(c.bytes, c.symbol_of("kernel") + 6, 3); },
       "kernel 'kernel' uses section .symtab"},
      {"a kernel longer than its code",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.symbol_of("kernel") + 16, 513); },
       "kernel 'kernel' (513 bytes at 0) runs past the 512 bytes"},
      {"a kernel whose end overflows",
       [](CubinImage& c) { patch<std::uint64_t>(c.bytes, c.symbol_of("kernel") + 8, ~0ull); },
       "runs past the 512 bytes"},
      {"a kernel without a name",
       [](CubinImage& c) { patch<std::uint32_t>(c.bytes, c.symbol_of("kernel"), 0); },
       "name of a kernel is empty"},
      {"a name with an escape sequence",
       [](CubinImage& c) { c.bytes[c.bytes_of(".strtab") + 2] = 0x1b; }, "unprintable"},
      {"no kernels", [](CubinImage& c) { c.bytes[c.symbol_of("kernel") + 5] = 0; },
       "it has no kernel"},
  });
}

TEST_CASE("two kernels of one name are refused") {
  const auto cubin = parse_cubin(make_cubin({.kernels = {{}, {}}}).bytes, "x.cubin");
  REQUIRE_FALSE(cubin);
  CHECK_THAT(cubin.error().message(), Catch::Contains("two kernels 'kernel'"));
}

TEST_CASE("a lie in the tool note is refused and named") {
  const auto note = [](const CubinImage& c) { return c.bytes_of(".note.nv.tkinfo"); };
  check_refused({
      {"half a note",
       [](CubinImage& c) {
         patch<std::uint64_t>(c.bytes, c.header_of(".note.nv.tkinfo") + kSize, 23);
       },
       ".note.nv.tkinfo has only 23 bytes"},
      {"a note longer than its section",
       [&](CubinImage& c) { patch<std::uint32_t>(c.bytes, note(c) + 4, 0xffffff00); },
       "runs out of it"},
      {"a text past the note",
       [&](CubinImage& c) { patch<std::uint32_t>(c.bytes, note(c) + 24 + 12, 0xffffffff); },
       "a text in .note.nv.tkinfo"},
      {"a text without an end",
       [&](CubinImage& c) {
         std::fill_n(c.bytes.begin() + static_cast<std::ptrdiff_t>(note(c) + 60), 60,
                     std::uint8_t{'x'});
         patch<std::uint32_t>(c.bytes, note(c) + 4, 24 + 50);
       },
       "a text in .note.nv.tkinfo"},
  });
}

TEST_CASE("a cubin cut off at any byte is refused, not misread") {
  const CubinImage image = make_cubin();
  for (std::size_t size = 0; size < image.bytes.size(); ++size) {
    CAPTURE(size);
    REQUIRE_FALSE(parse_cubin(std::span(image.bytes).first(size), "x.cubin"));
  }
}

TEST_CASE("names that are all one long text cost no more than their limit") {
  // 2,000 sections whose names begin in a text of a megabyte without an end.
  test::ByteWriter file;
  constexpr std::uint16_t kSections = 2000;
  constexpr std::uint32_t kNames = 1 << 20;
  file.u32(0x464c457f).u8(2).u8(1).u8(1).u8(0x41).u8(8).align(16);
  file.u16(2).u16(190).u32(1).u64(0).u64(0).u64(64).u32(0x06006402);
  file.u16(64).u16(56).u16(0).u16(64).u16(kSections).u16(1);
  for (std::uint32_t i = 0; i < kSections; ++i) {
    file.u32(i).u32(i == 1 ? 3 : 0).u64(0).u64(0).u64(64 + 64 * kSections).u64(i == 1 ? kNames : 0);
    file.u32(0).u32(0).u64(0).u64(0);
  }
  file.bytes.resize(file.size() + kNames, 'x');
  const auto cubin = parse_cubin(file.bytes, "x.cubin");
  REQUIRE_FALSE(cubin);
  CHECK_THAT(cubin.error().message(), Catch::Contains("the name of section 0 runs out"));
}

}  // namespace
}  // namespace cubist
