#include "importer/file_tree.h"

#include <filesystem>
#include <memory>
#include <string>

#include "base/file.h"
#include "support/catch.h"
#include "support/scratch.h"
#include "support/zip_writer.h"

namespace cubist {
namespace {

std::string text_of(const Result<std::vector<std::uint8_t>>& bytes) {
  return bytes ? std::string(bytes->begin(), bytes->end()) : "error: " + bytes.error().message();
}

void check_tree(const FileTree& tree) {
  REQUIRE(tree.files().size() == 2);
  CHECK(tree.files()[0].path == "a/b.txt");
  CHECK(tree.files()[0].size == 5);
  CHECK(tree.files()[1].path == "c");
  CHECK(text_of(tree.read("a/b.txt", 5)) == "hello");
  CHECK(text_of(tree.read("c", 0)).empty());
  CHECK(tree.find("a") == nullptr);
  CHECK(tree.read("a/x", 9).error().code() == StatusCode::kNotFound);
  CHECK(tree.read("a/b.txt", 4).error().code() == StatusCode::kIntegrity);
}

TEST_CASE("a folder and a zip of the same files are the same tree") {
  const test::Scratch scratch;
  std::filesystem::create_directories(scratch / "root/a");
  REQUIRE(write_file_atomically(scratch / "root/a/b.txt", std::string_view("hello")));
  REQUIRE(write_file_atomically(scratch / "root/c", std::string_view("")));
  const auto folder = open_file_tree(scratch / "root");
  REQUIRE(folder);
  CHECK((*folder)->source() == Source{Source::Kind::kFolder, scratch / "root", ""});
  check_tree(**folder);

  const test::ZipImage zip = test::make_zip({{"c", ""}, {"a/b.txt", "hello", true}});
  REQUIRE(write_file_atomically(scratch / "z.whl", zip.bytes));
  const auto wheel = open_file_tree(scratch / "z.whl");
  REQUIRE(wheel);
  CHECK((*wheel)->source() == Source{Source::Kind::kZip, scratch / "z.whl", ""});
  check_tree(**wheel);
}

TEST_CASE("symbolic links in a folder are not followed") {
  const test::Scratch scratch;
  std::filesystem::create_directory(scratch / "root");
  REQUIRE(write_file_atomically(scratch / "outside", std::string_view("secret")));
  std::filesystem::create_symlink(scratch / "outside", scratch / "root/link");
  std::filesystem::create_directory_symlink(scratch.path(), scratch / "root/loop");
  const auto tree = open_folder_tree(scratch / "root");
  REQUIRE(tree);
  CHECK((*tree)->files().empty());
}

TEST_CASE("what is no tree is refused") {
  const test::Scratch scratch;
  CHECK(open_file_tree(scratch / "missing").error().code() == StatusCode::kNotFound);
  CHECK(open_folder_tree(scratch / "missing").error().code() == StatusCode::kNotFound);
  REQUIRE(write_file_atomically(scratch / "text", std::string_view("no zip")));
  CHECK(open_file_tree(scratch / "text").error().code() == StatusCode::kIntegrity);
}

}  // namespace
}  // namespace cubist
