#include "base/file.h"

#include <fcntl.h>
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

TEST_CASE("a file that replaces an older one has its permissions, and a link stays a link") {
  const Folder folder;
  const std::string path = folder.file("a");
  std::ofstream(path) << "old";
  REQUIRE(::chmod(path.c_str(), 0640) == 0);
  fs::create_symlink("a", folder.file("near"));
  fs::create_symlink(folder.file("near"), folder.file("far"));
  REQUIRE(cubist::write_file_atomically(folder.file("far"), std::string_view("new")));
  CHECK(fs::is_symlink(folder.file("far")));
  CHECK(fs::is_symlink(folder.file("near")));
  CHECK(cubist::read_text_file(path, 100).value() == "new");
  CHECK(fs::status(path).permissions() == fs::perms(0640));
}

TEST_CASE("a write through a link to nothing makes the file, and a circle of links is refused") {
  const Folder folder;
  fs::create_symlink("made", folder.file("link"));
  REQUIRE(cubist::write_file_atomically(folder.file("link"), std::string_view("x")));
  CHECK(fs::is_symlink(folder.file("link")));
  CHECK(fs::is_regular_file(folder.file("made")));
  fs::create_symlink("circle", folder.file("circle"));
  CHECK_FALSE(cubist::write_file_atomically(folder.file("circle"), std::string_view("x")));
  CHECK(fs::is_symlink(folder.file("circle")));
}

TEST_CASE("a FIFO is written into and stays one") {
  const Folder folder;
  const std::string path = folder.file("fifo");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const cubist::UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  REQUIRE(reader.valid());
  REQUIRE(cubist::write_file_atomically(path, std::string_view("text")));
  CHECK(fs::is_fifo(path));
  std::string got(8, '\0');
  CHECK(::read(reader.get(), got.data(), got.size()) == 4);
  CHECK(got.substr(0, 4) == "text");
}

TEST_CASE("a folder is not written over") {
  const Folder folder;
  const auto written = cubist::write_file_atomically(folder.path.string(), std::string_view("x"));
  REQUIRE_FALSE(written);
  CHECK_THAT(written.error().message(), Catch::Contains("it is a folder"));
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
