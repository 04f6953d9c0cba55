#include "archive/zip.h"
#include "counting_access.h"
#include "support/byte_writer.h"
#include "support/catch.h"
#include "support/liar.h"
#include "support/zip_writer.h"

// Zips that lie about themselves in the end record or the directory: each is refused by open(),
// with a sentence that names the file and the lie.

namespace cubist {
namespace {

using test::CountingAccess;
using test::make_zip;
using test::patch;
using test::ZipImage;
using test::ZipInput;

using Liar = test::Liar<ZipImage>;

const std::vector<ZipInput> kFiles = {{"a/one.cubin", "first file", true},
                                      {"a/two.cubin", "second file", true},
                                      {"a/three-with-a-longer-name.cubin", "third file"}};

void check_refused(const ZipImage& image, const Liar& liar) {
  CAPTURE(liar.what);
  const auto zip = ZipArchive::open(std::make_shared<CountingAccess>(image.bytes));
  REQUIRE_FALSE(zip);
  CHECK(zip.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(zip.error().message(), Catch::Contains("'wheel.whl'"));
  CHECK_THAT(zip.error().message(), Catch::Contains(liar.says));
}

/// Replaces a name in directory and local header by another of the same length.
void rename(ZipImage& image, std::size_t index, const std::string& name) {
  for (std::size_t i = 0; i < name.size(); ++i) {
    image.bytes[image.entries[index] + 46 + i] = static_cast<std::uint8_t>(name[i]);
    image.bytes[image.locals[index] + 30 + i] = static_cast<std::uint8_t>(name[i]);
  }
}

TEST_CASE("a lie in the end record is refused and named") {
  const std::vector<Liar> liars = {
      {"an empty file", [](ZipImage& z) { z.bytes.clear(); }, "no end record"},
      {"no end record", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.end, 0); },
       "no end record"},
      {"cut inside the end record", [](ZipImage& z) { z.bytes.resize(z.end + 21); }, "truncated"},
      {"cut behind the data", [](ZipImage& z) { z.bytes.resize(z.entries[0]); }, "truncated"},
      {"bytes behind the end", [](ZipImage& z) { z.bytes.push_back(0); }, "no end record"},
      {"a comment longer than the file",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.end + 20, 500); }, "no end record"},
      {"two end records that fit",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.end + 20, 22);
         z.bytes.insert(z.bytes.end(), z.bytes.end() - 22, z.bytes.end());
         patch<std::uint16_t>(z.bytes, z.end + 42, 0);
       },
       "two zip end records"},
      {"more entries than there are",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.end + 8, 4);
         patch<std::uint16_t>(z.bytes, z.end + 10, 4);
       },
       "no zip directory entry 3"},
      {"fewer entries than there are",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.end + 8, 2);
         patch<std::uint16_t>(z.bytes, z.end + 10, 2);
       },
       "follow its 2 entries"},
      {"far more entries than fit",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.end + 8, 0xfffe);
         patch<std::uint16_t>(z.bytes, z.end + 10, 0xfffe);
       },
       "counts 65534 entries"},
      {"entries on other disks", [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.end + 8, 1); },
       "split zip"},
      {"the second disk", [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.end + 4, 1); },
       "split zip"},
      {"the directory on another disk",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.end + 6, 1); }, "split zip"},
      {"a directory larger than the file",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.end + 12, 0xfffffff0); },
       "must end at byte"},
      {"a directory somewhere else",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.end + 16, 7); }, "must end at byte"},
      {"something in front of the zip",
       [](ZipImage& z) { z.bytes.insert(z.bytes.begin(), 100, 0x90); },
       "something in front of the zip"},
  };
  for (const Liar& liar : liars) {
    ZipImage image = make_zip(kFiles);
    liar.lie(image);
    check_refused(image, liar);
  }
}

TEST_CASE("a lie in the zip64 end record is refused and named") {
  const std::vector<Liar> liars = {
      {"locator beyond the file",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_locator + 8, ~0ull); },
       "zip64 locator points to byte 18446744073709551615"},
      {"locator to itself",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_locator + 8, z.zip64_locator); },
       "where no zip64 end record fits"},
      {"locator to the data",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_locator + 8, 0); },
       "holds no zip64 end record"},
      {"locator of a split zip",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.zip64_locator + 16, 2); }, "split zip"},
      {"no locator", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.zip64_locator, 0); },
       "must end at byte"},
      {"a record of another size",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_end + 4, 45); },
       "holds no zip64 end record of 56 bytes"},
      {"a record size that overflows",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_end + 4, ~0ull - 11); },
       "holds no zip64 end record"},
      {"a huge count",
       [](ZipImage& z) {
         patch<std::uint64_t>(z.bytes, z.zip64_end + 24, ~0ull);
         patch<std::uint64_t>(z.bytes, z.zip64_end + 32, ~0ull);
       },
       "counts 18446744073709551615 entries"},
      {"a huge directory",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_end + 40, ~0ull); },
       "must end at byte"},
      {"a directory offset that overflows",
       [](ZipImage& z) { patch<std::uint64_t>(z.bytes, z.zip64_end + 48, ~0ull - 10); },
       "must end at byte"},
      {"a count unlike the end record's",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.end + 10, 2); }, "contradict each other"},
      {"an offset unlike the end record's",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.end + 16, 2); }, "contradict each other"},
      {"another disk", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.zip64_end + 16, 1); },
       "split zip"},
  };
  for (const Liar& liar : liars) {
    ZipImage image = make_zip(kFiles, {true, ""});
    liar.lie(image);
    check_refused(image, liar);
  }
}

TEST_CASE("a lie in a directory entry is refused and named") {
  const std::vector<Liar> liars = {
      {"no entry", [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[1], 0); },
       "no zip directory entry 1"},
      {"a name past the directory",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[2] + 28, 0xffff); },
       "run past the directory's end"},
      {"extra fields past the directory",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[2] + 30, 50); },
       "run past the directory's end"},
      {"no name",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.entries[0] + 28, 0);
         patch<std::uint16_t>(z.bytes, z.entries[0] + 32, 11);  // the name becomes the comment
       },
       "is empty"},
      {"an encrypted member",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[0] + 8, 1); }, "encrypted"},
      {"a masked member",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[0] + 8, 0x2000); }, "encrypted"},
      {"a member on another disk",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[0] + 34, 3); }, "on disk 3"},
      {"a stored member of two sizes",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[2] + 24, 11); },
       "is stored, but 11 bytes are said to take 10"},
      {"more than deflate can pack",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[0] + 24, 1u << 30); },
       "more than deflate can pack"},
      {"data that reaches into the next member",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[0] + 20, 60); },
       "member 'a/one.cubin' (header at byte 0, 60 bytes of data) reaches into 'a/two.cubin'"},
      {"data that reaches into the directory",
       [](ZipImage& z) {
         patch<std::uint32_t>(z.bytes, z.entries[2] + 20, 11);
         patch<std::uint32_t>(z.bytes, z.entries[2] + 24, 11);
       },
       "reaches into the directory"},
      {"two members at one place",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[1] + 42, 0); }, "reaches into"},
      {"a header behind the directory",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[1] + 42, 1u << 20); },
       "reaches into the directory"},
      {"a zip64 value that is not there",
       [](ZipImage& z) { patch<std::uint32_t>(z.bytes, z.entries[0] + 42, 0xffffffff); },
       "broken extra fields"},
      {"the same name twice", [](ZipImage& z) { rename(z, 1, "a/one.cubin"); },
       "'a/one.cubin' occurs twice"},
      {"a folder with bytes", [](ZipImage& z) { rename(z, 0, "a/one.cubi/"); },
       "is a folder, but has 10 bytes"},
      {"traversal", [](ZipImage& z) { rename(z, 0, "../../evil."); }, "has a '..' part"},
      {"an absolute name", [](ZipImage& z) { rename(z, 0, "/etc/passwd"); }, "is absolute"},
      {"a control character", [](ZipImage& z) { rename(z, 0, "a/\x1b[31mx.cu"); },
       "has a control character"},
      {"a NUL", [](ZipImage& z) { z.bytes[z.entries[0] + 48] = 0; }, "has a control character"},
      {"a backslash", [](ZipImage& z) { rename(z, 0, "a\\one.cubin"); }, "has a backslash"},
      {"broken UTF-8", [](ZipImage& z) { rename(z, 0, "a/\xff\xfe.cubin"); }, "is not UTF-8"},
  };
  for (const Liar& liar : liars) {
    ZipImage image = make_zip(kFiles);
    liar.lie(image);
    check_refused(image, liar);
  }
}

TEST_CASE("a lie in an entry's zip64 extra field is refused and named") {
  const std::vector<Liar> liars = {
      {"sizes that overflow any sum",
       [](ZipImage& z) {
         patch<std::uint64_t>(z.bytes, z.entries[0] + 46 + 1 + 4, ~0ull);
         patch<std::uint64_t>(z.bytes, z.entries[0] + 46 + 1 + 12, ~0ull);
       },
       "reaches into"},
      {"a record longer than the field",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[0] + 46 + 1 + 2, 17); },
       "broken extra fields"},
      {"a record too short for its values",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.entries[0] + 46 + 1 + 2, 8);
         patch<std::uint32_t>(z.bytes, z.entries[0] + 46 + 1 + 12, 0x00040005);  // id 5, 4 bytes
       },
       "broken extra fields"},
      {"half a record header",
       [](ZipImage& z) { patch<std::uint16_t>(z.bytes, z.entries[0] + 46 + 1 + 2, 14); },
       "broken extra fields"},
      {"two zip64 records",
       [](ZipImage& z) {
         patch<std::uint16_t>(z.bytes, z.entries[0] + 46 + 1 + 2, 8);
         patch<std::uint32_t>(z.bytes, z.entries[0] + 46 + 1 + 12, 0x00040001);
       },
       "broken extra fields"},
  };
  for (const Liar& liar : liars) {
    ZipImage image = make_zip({{"a", "data", false, false, true}});
    liar.lie(image);
    check_refused(image, liar);
  }
}

TEST_CASE("a folder and a file of one name are refused") {
  check_refused(make_zip({{"a/b/", ""}, {"a/b", "x"}}),
                {"folder and file", {}, "'a/b' occurs twice"});
}

TEST_CASE("a zip cut off at any byte is refused, not misread") {
  const ZipImage image = make_zip(kFiles, {true, "comment"});
  for (std::size_t size = 0; size < image.bytes.size(); ++size) {
    const std::vector<std::uint8_t> cut(image.bytes.begin(),
                                        image.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    const auto zip = ZipArchive::open(std::make_shared<CountingAccess>(cut));
    CAPTURE(size);
    REQUIRE_FALSE(zip);
  }
}

/// 128 MiB that are all directory by the end record, and that fail to be read.
class Sparse final : public RandomAccess {
 public:
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return kSize; }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    if (offset + out.size() != kSize) return fail(StatusCode::kInternal, "the directory was read");
    std::fill(out.begin(), out.end(), std::uint8_t{0});
    test::ByteWriter end;
    end.u32(0x06054b50).u16(0).u16(0).u16(1).u16(1).u32(kSize - 22).u32(0).u16(0);
    std::copy(end.bytes.begin(), end.bytes.end(), out.end() - 22);
    return {};
  }

 private:
  static constexpr std::uint32_t kSize = 1u << 27;
  std::string name_ = "wheel.whl";
};

TEST_CASE("a directory too large to be honest is not read") {
  const auto zip = ZipArchive::open(std::make_shared<Sparse>());
  REQUIRE_FALSE(zip);
  CHECK_THAT(zip.error().message(), Catch::Contains("at most 67108864 are read"));
}

}  // namespace
}  // namespace cubist
