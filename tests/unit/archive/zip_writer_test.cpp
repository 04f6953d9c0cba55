#include "archive/zip_writer.h"

#include "archive/deflate.h"
#include "archive/inflate.h"
#include "archive/zip_directory.h"
#include "support/catch.h"

namespace cubist {
namespace {

using Bytes = std::vector<std::uint8_t>;

ZipWriter::Sink into(Bytes& file) {
  return [&file](std::span<const std::uint8_t> bytes) -> Status {
    file.insert(file.end(), bytes.begin(), bytes.end());
    return {};
  };
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

TEST_CASE("what deflate_bytes packs inflates to the same bytes") {
  for (const std::size_t size : {0, 1, 100, 70'000, 3'000'000}) {
    CAPTURE(size);
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * i >> 7);
    const Bytes packed = deflate_bytes(bytes);
    Bytes out(size);
    CHECK(inflate_exactly(packed, out) == InflateOutcome::kOk);
    CHECK(out == bytes);
  }
}

TEST_CASE("a written zip reads back, members in order") {
  Bytes file;
  ZipWriter writer(into(file));
  REQUIRE(writer.add("b.txt", pack_member(bytes_of("stored"), true)));
  REQUIRE(writer.add("a/long", pack_member(Bytes(100'000, 'x'), false)));
  REQUIRE(writer.add("empty", pack_member({}, false)));
  REQUIRE(writer.finish());
  CHECK(writer.offset() == file.size());
  const auto zip = ZipArchive::open(memory_access("z", file));
  if (!zip) FAIL(zip.error().message());
  REQUIRE(zip->members().size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    const ZipMember& read = zip->members()[i];
    const ZipMember& wrote = writer.members()[i];
    CHECK(read.name == wrote.name);
    CHECK(read.header_offset == wrote.header_offset);
    CHECK(read.limit_offset == wrote.limit_offset);
    CHECK(read.crc32 == wrote.crc32);
  }
  CHECK(zip->members()[1].method == 8);
  CHECK(zip->members()[1].compressed_size < 1000);
  CHECK(zip->members()[2].method == 0);
  CHECK(zip->read(zip->members()[1], 1 << 20).value() == Bytes(100'000, 'x'));
  CHECK(zip->read(zip->members()[0], 1 << 20).value() == bytes_of("stored"));
}

TEST_CASE("what deflate cannot make smaller is stored") {
  CHECK(pack_member(bytes_of("ab"), false).method == 0);
  CHECK(pack_member(Bytes(1000, 0), false).method == 8);
  CHECK(pack_member(Bytes(1000, 0), true).method == 0);
}

TEST_CASE("more members than 16 bits can count need zip64, and read back") {
  Bytes file;
  ZipWriter writer(into(file));
  const PackedMember member = pack_member(bytes_of("x"), true);
  constexpr std::size_t kCount = 70'000;
  for (std::size_t i = 0; i < kCount; ++i) REQUIRE(writer.add(std::to_string(i), member));
  REQUIRE(writer.finish());
  const auto zip = ZipArchive::open(memory_access("z", file));
  if (!zip) FAIL(zip.error().message());
  CHECK(zip->members().size() == kCount);
  REQUIRE(zip->find("69999") != nullptr);
  CHECK(zip->read(*zip->find("69999"), 10).value() == bytes_of("x"));
}

TEST_CASE("a directory entry beyond 4 GiB carries its offset in a zip64 field") {
  ZipMember member;
  member.name = "far";
  member.size = member.compressed_size = 5;
  constexpr std::uint64_t kFar = 0x1'2345'6789;
  for (const std::uint64_t offset : {std::uint64_t{0xfffffffe}, std::uint64_t{0xffffffff}, kFar}) {
    CAPTURE(offset);
    member.header_offset = offset;
    const Bytes entry = zip_directory_entry(member);
    const auto parsed = parse_zip_directory(entry, 1, offset + 38, "z");
    if (!parsed) FAIL(parsed.error().message());
    CHECK(parsed->at(0).header_offset == offset);
    CHECK(parsed->at(0).limit_offset == offset + 38);
  }
}

TEST_CASE("end records say what needs 64 bits in a zip64 record") {
  CHECK(zip_end_records(0xfffe, 0xfffffffe, 10).size() == 22);
  CHECK(zip_end_records(0xffff, 10, 10).size() == 22 + 76);
  CHECK(zip_end_records(1, 0xffffffff, 10).size() == 22 + 76);
}

TEST_CASE("an error of the sink ends the writing") {
  ZipWriter writer(
      [](std::span<const std::uint8_t>) -> Status { return fail(StatusCode::kIo, "full"); });
  const Status added = writer.add("a", pack_member(bytes_of("x"), true));
  REQUIRE_FALSE(added);
  CHECK(added.error().code() == StatusCode::kIo);
}

}  // namespace
}  // namespace cubist
