#include "launcher/elf_extent.h"

#include <elf.h>

#include <cstring>

#include "support/catch.h"
#include "support/fake_cubin.h"

using namespace cubist;
using Catch::Matchers::Contains;

namespace {

std::vector<std::uint8_t> cubin() { return test::fake_cubin(90, {"decode_one"}); }

template <class T>
void put(std::vector<std::uint8_t>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof(value));
}

void check_refused(const std::vector<std::uint8_t>& bytes, const std::string& phrase) {
  const Status status = launcher::check_elf_extent(bytes, "one.cubin");
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(status.error().message(), Contains("'one.cubin'") && Contains(phrase));
}

}  // namespace

TEST_CASE("a whole cubin is accepted") {
  CHECK(launcher::check_elf_extent(cubin(), "one.cubin").has_value());
}

TEST_CASE("a cubin cut off anywhere is refused before the driver sees it") {
  const std::vector<std::uint8_t> whole = cubin();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<std::uint8_t> cut(whole.begin(),
                                        whole.begin() + static_cast<std::ptrdiff_t>(size));
    CHECK_FALSE(launcher::check_elf_extent(cut, "one.cubin").has_value());
  }
}

TEST_CASE("bytes that are no 64-bit little-endian ELF are refused") {
  auto bytes = cubin();
  bytes[0] = 'M';
  check_refused(bytes, "no 64-bit little-endian ELF");
  bytes = cubin();
  bytes[EI_CLASS] = ELFCLASS32;
  check_refused(bytes, "no 64-bit little-endian ELF");
  bytes = cubin();
  bytes[EI_DATA] = ELFDATA2MSB;
  check_refused(bytes, "no 64-bit little-endian ELF");
}

TEST_CASE("a header that points beyond the end is refused, also where the sum would wrap") {
  for (const std::uint64_t offset : {std::uint64_t{100000}, ~std::uint64_t{0} - 10}) {
    auto bytes = cubin();
    put(bytes, offsetof(Elf64_Ehdr, e_shoff), offset);
    check_refused(bytes, "the section header table");
  }
  auto bytes = cubin();
  put(bytes, offsetof(Elf64_Ehdr, e_phoff), std::uint64_t{100000});
  check_refused(bytes, "the program header table");
}

TEST_CASE("a section beyond the end is refused unless it has no bits in the file") {
  auto bytes = cubin();
  const std::size_t section = sizeof(Elf64_Ehdr) + sizeof(Elf64_Shdr);
  put(bytes, section + offsetof(Elf64_Shdr, sh_size), ~std::uint64_t{0});
  check_refused(bytes, "a section");
  put(bytes, section + offsetof(Elf64_Shdr, sh_type), std::uint32_t{SHT_NOBITS});
  CHECK(launcher::check_elf_extent(bytes, "one.cubin").has_value());
}

TEST_CASE("odd header sizes and a file without sections are refused") {
  auto bytes = cubin();
  put(bytes, offsetof(Elf64_Ehdr, e_shentsize), std::uint16_t{40});
  check_refused(bytes, "headers of 40");
  bytes = cubin();
  put(bytes, offsetof(Elf64_Ehdr, e_shnum), std::uint16_t{0});
  check_refused(bytes, "no sections");
}
