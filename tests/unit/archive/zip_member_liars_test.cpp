#include "archive/zip.h"
#include "counting_access.h"
#include "support/byte_writer.h"
#include "support/catch.h"
#include "support/liar.h"
#include "support/zip_writer.h"

// Members that lie: the directory looks well, so open() works, and reading the member is refused.

namespace cubist {
namespace {

using test::CountingAccess;
using test::make_zip;
using test::patch;
using test::ZipImage;
using test::ZipInput;

using Liar = test::Liar<ZipImage>;

const std::string kText(1000, 'x');

void check_refused(ZipImage image, const Liar& liar, std::uint64_t max_size = 1 << 20) {
  CAPTURE(liar.what);
  liar.lie(image);
  auto zip = ZipArchive::open(std::make_shared<CountingAccess>(image.bytes));
  if (!zip) FAIL(zip.error().message());
  const auto bytes = zip->read(zip->members()[0], max_size);
  REQUIRE_FALSE(bytes);
  CHECK(bytes.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(bytes.error().message(), Catch::Contains("'wheel.whl'"));
  CHECK_THAT(bytes.error().message(), Catch::Contains("'a.cubin'"));
  CHECK_THAT(bytes.error().message(), Catch::Contains(liar.says));
}

void patch_both(ZipImage& z, std::size_t local, std::size_t entry, std::uint32_t value) {
  patch<std::uint32_t>(z.bytes, z.locals[0] + local, value);
  patch<std::uint32_t>(z.bytes, z.entries[0] + entry, value);
}

TEST_CASE("a local header that says something else than the directory is refused") {
  const std::vector<Liar> liars = {
      {"no header", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, 0, 0); }, "no local header"},
      {"another name", [](ZipImage& z) { z.bytes[30] = 'b'; }, "disagree about its name"},
      {"a longer name", [](ZipImage& z) { patch<std::uint16_t>(z.bytes, 26, 60000); },
       "disagree about its name"},
      {"other flags", [](ZipImage& z) { patch<std::uint16_t>(z.bytes, 6, 1); },
       "disagree about its flags"},
      {"another method", [](ZipImage& z) { patch<std::uint16_t>(z.bytes, 8, 0); },
       "disagree about its method"},
      {"another CRC", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, 14, 1); },
       "disagree about its CRC-32"},
      {"another compressed size", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, 18, 1); },
       "disagree about its compressed size"},
      {"another size", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, 22, 1); },
       "disagree about its size"},
      {"extra fields past everything",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, 28, 60000); },
       "disagree about its extra fields"},
      {"a zip64 size that is not there",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, 22, 0xffffffff); },
       "disagree about its extra fields"},
  };
  for (const Liar& liar : liars) check_refused(make_zip({{"a.cubin", kText, true}}), liar);
}

TEST_CASE("extra fields that push the data over the member's end are refused") {
  // The local header claims 4 bytes of extra fields out of the data: an empty record, id 0.
  check_refused(make_zip({{"a.cubin", std::string(8, '\0')}}),
                {"data moved", [](ZipImage& z) { patch<std::uint16_t>(z.bytes, 28, 4); },
                 "run past byte 45"});
}

TEST_CASE("data that is not what the directory promises is refused") {
  const std::vector<Liar> liars = {
      {"a wrong CRC", [](ZipImage& z) { patch_both(z, 14, 16, 0x12345678); },
       "the directory says 12345678"},
      {"a flipped bit", [](ZipImage& z) { z.bytes[z.entries[0] - 2] ^= 0x40; }, "is damaged"},
      {"a broken stream", [](ZipImage& z) { z.bytes[37] = 0xff; }, "deflate stream is broken"},
      {"more bytes than promised", [](ZipImage& z) { patch_both(z, 22, 24, 999); },
       "inflates to more bytes"},
      {"fewer bytes than promised", [](ZipImage& z) { patch_both(z, 22, 24, 1001); },
       "inflates to fewer bytes"},
      {"a stream cut off", [](ZipImage& z) { patch_both(z, 18, 20, 5); },
       "deflate stream is cut off"},
      {"an unknown method",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.locals[0] + 8, 14);
         patch<std::uint16_t>(z.bytes, z.entries[0] + 10, 14);
       },
       "method 14"},
  };
  for (const Liar& liar : liars) check_refused(make_zip({{"a.cubin", kText, true}}), liar);
}

TEST_CASE("bytes behind a deflate stream are refused") {
  ZipImage image = make_zip({{"a.cubin", test::deflated(kText) + "more"}});
  for (const std::size_t method : {image.locals[0] + 8, image.entries[0] + 10}) {
    patch<std::uint16_t>(image.bytes, method, 8);
  }
  patch_both(image, 22, 24, 1000);
  check_refused(image, {"trailing bytes", [](ZipImage&) {}, "bytes follow the end"});
}

TEST_CASE("a member over the limit is refused before it is read") {
  ZipImage image = make_zip({{"a.cubin", std::string(1 << 16, 'x'), true}});
  auto access = std::make_shared<CountingAccess>(image.bytes);
  auto zip = ZipArchive::open(access);
  REQUIRE(zip);
  const std::size_t reads = access->reads.size();
  CHECK(zip->read(zip->members()[0], 1 << 16));
  CHECK(access->reads.size() == reads + 1);
  const auto refused = zip->read(zip->members()[0], (1 << 16) - 1);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("at most 65535 are accepted here"));
  CHECK(access->reads.size() == reads + 1);
}

TEST_CASE("a bomb that claims to be small is stopped at its claim") {
  ZipImage image = make_zip({{"a.cubin", std::string(1 << 20, '\0'), true}});
  patch_both(image, 22, 24, 100);
  check_refused(image, {"bomb", [](ZipImage&) {}, "inflates to more bytes"}, 1000);
}

TEST_CASE("a member that claims few bytes but takes many compressed ones is refused") {
  ZipImage image = make_zip({{"a.cubin", std::string(5000, 'x')}});
  for (const std::size_t method : {image.locals[0] + 8, image.entries[0] + 10}) {
    patch<std::uint16_t>(image.bytes, method, 8);
  }
  patch_both(image, 22, 24, 10);
  check_refused(image, {"compressed bytes", [](ZipImage&) {}, "5000 compressed"}, 100);
}

}  // namespace
}  // namespace cubist
