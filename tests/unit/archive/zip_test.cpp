#include "archive/zip.h"

#include "counting_access.h"
#include "support/byte_writer.h"
#include "support/catch.h"
#include "support/zip_writer.h"

namespace cubist {
namespace {

using test::CountingAccess;
using test::make_zip;
using test::ZipImage;
using test::ZipInput;

constexpr std::uint64_t kMax = 1 << 20;

std::string text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string read_text(const ZipArchive& zip, std::string_view name) {
  const ZipMember* member = zip.find(name);
  REQUIRE(member != nullptr);
  auto bytes = zip.read(*member, kMax);
  if (!bytes) FAIL(bytes.error().message());
  return text(*bytes);
}

Result<ZipArchive> open(const ZipImage& image) {
  return ZipArchive::open(std::make_shared<CountingAccess>(image.bytes));
}

TEST_CASE("stored and deflated members come back as they went in") {
  const std::string long_text(100'000, 'x');
  for (const bool deflate : {false, true}) {
    for (const bool descriptor : {false, true}) {
      for (const bool zip64 : {false, true}) {
        CAPTURE(deflate, descriptor, zip64);
        const ZipImage image = make_zip({{"a/one.txt", "first", deflate, descriptor, zip64},
                                         {"a/two.txt", long_text, deflate, descriptor, zip64},
                                         {"empty", "", deflate, descriptor, zip64}},
                                        {zip64, "a comment"});
        auto zip = open(image);
        if (!zip) FAIL(zip.error().message());
        REQUIRE(zip->members().size() == 3);
        CHECK(read_text(*zip, "a/one.txt") == "first");
        CHECK(read_text(*zip, "a/two.txt") == long_text);
        CHECK(read_text(*zip, "empty").empty());
        CHECK(zip->find("a/three.txt") == nullptr);
      }
    }
  }
}

TEST_CASE("a small zip is opened with one read and each member costs one more") {
  const ZipImage image = make_zip({{"a", "first", true}, {"b", "second"}});
  auto access = std::make_shared<CountingAccess>(image.bytes);
  auto zip = ZipArchive::open(access);
  REQUIRE(zip);
  CHECK(access->reads.size() == 1);
  CHECK(read_text(*zip, "b") == "second");
  REQUIRE(access->reads.size() == 2);
  CHECK(access->reads[1].offset == image.locals[1]);
  CHECK(access->reads[1].offset + access->reads[1].length == image.entries[0]);
}

TEST_CASE("a directory that lies before the last 64 KiB is fetched with one read of its own") {
  std::vector<ZipInput> files;
  for (int i = 0; i < 2000; ++i)
    files.push_back({"folder/" + std::string(40, 'n') + std::to_string(i), "x"});
  const ZipImage image = make_zip(files, {true, ""});
  auto access = std::make_shared<CountingAccess>(image.bytes);
  auto zip = ZipArchive::open(access);
  REQUIRE(zip);
  CHECK(zip->members().size() == 2000);
  REQUIRE(access->reads.size() == 2);
  CHECK(access->reads[1].offset == image.entries[0]);
  CHECK(access->reads[1].length == image.zip64_end - image.entries[0]);
  CHECK(read_text(*zip, files[1999].name) == "x");
  CHECK(access->reads.size() == 3);
}

TEST_CASE("a member is never read further than its local header can make necessary") {
  ZipImage image = make_zip({{"a", "first"}, {"b", std::string(1'000'000, 'x')}});
  // Taking the second entry out leaves a gap of a megabyte behind the first member.
  const std::size_t end_of_first = image.entries[1];
  std::vector<std::uint8_t> bytes(image.bytes.begin(),
                                  image.bytes.begin() + static_cast<std::ptrdiff_t>(end_of_first));
  bytes.insert(bytes.end(), image.bytes.begin() + static_cast<std::ptrdiff_t>(image.end),
               image.bytes.end());
  test::patch<std::uint16_t>(bytes, end_of_first + 8, 1);
  test::patch<std::uint16_t>(bytes, end_of_first + 10, 1);
  test::patch<std::uint32_t>(bytes, end_of_first + 12,
                             static_cast<std::uint32_t>(end_of_first - image.entries[0]));
  auto access = std::make_shared<CountingAccess>(bytes);
  auto zip = ZipArchive::open(access);
  if (!zip) FAIL(zip.error().message());
  CHECK(read_text(*zip, "a") == "first");
  CHECK(access->reads.back().length < 70'000);
}

TEST_CASE("a member can be made of bytes that the caller fetched") {
  const ZipImage image = make_zip({{"a", "first", true}, {"b", "second", true}});
  auto zip = open(image);
  REQUIRE(zip);
  const ZipMember& member = *zip->find("b");
  const ZipArchive::Extent range = zip->extent(member);
  const std::span<const std::uint8_t> all(image.bytes);
  const auto fetched = all.subspan(range.offset, range.length);
  auto bytes = zip->unpack(member, fetched, kMax);
  REQUIRE(bytes);
  CHECK(text(*bytes) == "second");
  CHECK_FALSE(zip->unpack(member, fetched.first(20), kMax));
}

TEST_CASE("folders are left out") {
  auto zip = open(make_zip({{"a/", ""}, {"a/b", "x"}}));
  REQUIRE(zip);
  REQUIRE(zip->members().size() == 1);
  CHECK(zip->members()[0].name == "a/b");
}

TEST_CASE("a zip without members opens") {
  auto zip = open(make_zip({}));
  REQUIRE(zip);
  CHECK(zip->members().empty());
}

TEST_CASE("an archive can be moved and still finds its members") {
  auto opened = open(make_zip({{"a", "first"}, {"b", "second"}}));
  REQUIRE(opened);
  const ZipArchive zip = std::move(*opened);
  CHECK(read_text(zip, "b") == "second");
  CHECK(zip.name() == "wheel.whl");
}

/// A source that breaks at one of its reads.
class BreakingAccess final : public RandomAccess {
 public:
  BreakingAccess(std::vector<std::uint8_t> bytes, int reads_that_work)
      : inner_(std::move(bytes)), left_(reads_that_work) {}
  const std::string& name() const override { return inner_.name(); }
  std::uint64_t size() const override { return inner_.size(); }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override {
    if (left_-- == 0) return fail(StatusCode::kNetwork, "the line went dead");
    return inner_.read(offset, out);
  }

 private:
  CountingAccess inner_;
  int left_;
};

TEST_CASE("a read that fails is handed on, whichever it is") {
  std::vector<ZipInput> files;
  for (int i = 0; i < 2000; ++i) files.push_back({std::string(40, 'n') + std::to_string(i), "x"});
  const ZipImage image = make_zip(files);
  for (int works = 0; works < 3; ++works) {
    CAPTURE(works);
    auto zip = ZipArchive::open(std::make_shared<BreakingAccess>(image.bytes, works));
    REQUIRE(zip.has_value() == (works == 2));
    const Error error = zip ? zip->read(zip->members()[0], kMax).error() : zip.error();
    CHECK(error.code() == StatusCode::kNetwork);
    CHECK(error.message() == "the line went dead");
  }
}

}  // namespace
}  // namespace cubist
