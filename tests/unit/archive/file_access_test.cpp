#include <array>

#include "archive/zip.h"
#include "base/file.h"
#include "support/catch.h"
#include "support/scratch.h"
#include "support/zip_writer.h"

namespace cubist {
namespace {

TEST_CASE("a zip on disk is read through its file") {
  const test::Scratch scratch;
  const std::string path = scratch / "a.whl";
  const test::ZipImage image = test::make_zip({{"a.cubin", "bytes", true}});
  REQUIRE(write_file_atomically(path, image.bytes));
  auto file = open_file_access(path);
  REQUIRE(file);
  CHECK((*file)->name() == path);
  CHECK((*file)->size() == image.bytes.size());
  auto zip = ZipArchive::open(*file);
  REQUIRE(zip);
  CHECK(zip->read(zip->members()[0], 5)->size() == 5);
}

TEST_CASE("a read past a file's end says where it ends") {
  const test::Scratch scratch;
  const std::string path = scratch / "short";
  REQUIRE(write_file_atomically(path, std::string_view("1234")));
  auto file = open_file_access(path);
  REQUIRE(file);
  std::array<std::uint8_t, 4> out{};
  CHECK((*file)->read(0, out));
  const Status failed = (*file)->read(2, out);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(failed.error().message(), Catch::Contains("ends at byte 4"));
}

TEST_CASE("a missing file and a folder are refused") {
  const test::Scratch scratch;
  CHECK(open_file_access(scratch / "missing").error().code() == StatusCode::kNotFound);
  CHECK(open_file_access(scratch.path()).error().code() == StatusCode::kIo);
}

TEST_CASE("bytes in memory are read within their bounds") {
  const std::vector<std::uint8_t> bytes = {1, 2, 3, 4};
  const auto memory = memory_access("memory", bytes);
  std::array<std::uint8_t, 2> out{};
  REQUIRE(memory->read(2, out));
  CHECK(out[0] == 3);
  CHECK(memory->size() == 4);
  for (const std::uint64_t offset : {std::uint64_t{3}, std::uint64_t{5}, ~std::uint64_t{0}}) {
    const Status failed = memory->read(offset, out);
    REQUIRE_FALSE(failed);
    CHECK_THAT(failed.error().message(), Catch::Contains("'memory' has 4 bytes"));
  }
}

}  // namespace
}  // namespace cubist
