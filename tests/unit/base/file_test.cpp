#include "base/file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.h"

namespace fs = std::filesystem;
using cubist::StatusCode;

namespace {
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "cubist-file-test-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  std::string file(const std::string& name) const { return (path / name).string(); }
};
}  // namespace

TEST_CASE(
    "a file written atomically reads back, replaces an older one and leaves nothing beside it") {
  const Folder folder;
  const std::string path = folder.file("a.txt");
  REQUIRE(cubist::write_file_atomically(path, std::string_view("one")));
  REQUIRE(cubist::write_file_atomically(path, std::string_view("two")));
  CHECK(cubist::read_text_file(path, 100).value() == "two");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
}

TEST_CASE("a write into a folder that is not there names the path and leaves nothing") {
  const Folder folder;
  const auto written =
      cubist::write_file_atomically(folder.file("no/such/a"), std::string_view("x"));
  REQUIRE_FALSE(written);
  CHECK(written.error().code() == StatusCode::kIo);
  CHECK_THAT(written.error().message(), Catch::Contains("no/such/a"));
}

TEST_CASE("reading refuses what is missing, too large, or no regular file") {
  const Folder folder;
  CHECK(cubist::read_file(folder.file("none"), 10).error().code() == StatusCode::kNotFound);
  std::ofstream(folder.file("big")) << "0123456789";
  CHECK(cubist::read_file(folder.file("big"), 9).error().code() == StatusCode::kIntegrity);
  CHECK(cubist::read_file(folder.file("big"), 10)->size() == 10);
  CHECK(cubist::read_file(folder.path.string(), 10).error().code() == StatusCode::kIo);
  REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(cubist::read_file(folder.file("pipe"), 10).error().code() == StatusCode::kIo);
}

TEST_CASE("reading past the end says where the file ends") {
  const Folder folder;
  std::ofstream(folder.file("short")) << "abc";
  const auto fd = cubist::open_regular_file(folder.file("short"));
  std::uint8_t buffer[4];
  const auto read = cubist::read_exactly_at(*fd, 0, buffer, "short");
  REQUIRE_FALSE(read);
  CHECK(read.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(read.error().message(), Catch::Contains("ends at byte 3"));
}
