#include "registry/store.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "support/catch.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace fs = std::filesystem;
using cubist::KernelRecord;
using cubist::StatusCode;
using cubist::Store;
using cubist::test::record_of;
using cubist::test::Scratch;
using cubist::test::synthetic_bytes;
using cubist::test::verified;

namespace {

void overwrite(const std::string& path, const std::string& text) {
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string text_of(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

ino_t inode(const std::string& path) {
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  return info.st_ino;
}

std::size_t count_files(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    count += entry.is_regular_file();
  return count;
}

std::string why_broken(const Store& store, const KernelRecord& record) {
  const auto opened = store.open_verified(record);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code() == StatusCode::kIntegrity);
  return opened.error().message();
}

}  // namespace

TEST_CASE("an installed cubin opens again with the same bytes, read-only and alone in the store") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  const auto bytes = synthetic_bytes(1, 100'000);
  const auto path = store.install(verified(bytes));
  REQUIRE(path);
  CHECK(*path == cubist::entry_path(store.root(), cubist::sha256(bytes)));
  CHECK((fs::status(*path).permissions() & fs::perms(0222)) == fs::perms::none);
  const auto opened = store.open_verified(record_of("k", bytes));
  REQUIRE(opened);
  REQUIRE(*opened);
  CHECK(std::equal(bytes.begin(), bytes.end(), (*opened)->bytes().begin()));
  CHECK(count_files(store.root()) == 1);
}

TEST_CASE("what is not there is an empty answer, and asking creates nothing") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  const auto record = record_of("k", synthetic_bytes(1, 10));
  CHECK_FALSE(store.open_verified(record).value());
  CHECK_FALSE(store.find(record).value());
  CHECK_FALSE(fs::exists(store.root()));
}

TEST_CASE("installing what is there already changes nothing") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  const auto cubin = verified(synthetic_bytes(2, 5'000));
  const std::string path = store.install(cubin).value();
  const ino_t before = inode(path);
  CHECK(store.install(cubin).value() == path);
  CHECK(inode(path) == before);
  CHECK(count_files(store.root()) == 1);
}

TEST_CASE("a broken entry is never served, is named, and what it looks like is said") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  auto bytes = synthetic_bytes(3, 9'000);
  const KernelRecord record = record_of("k", bytes);
  const std::string path = store.install(verified(bytes)).value();

  SECTION("one bit flipped") {
    auto flipped = bytes;
    flipped[4'321] ^= 1;
    overwrite(path, text_of(flipped));
    CHECK_THAT(why_broken(store, record), Catch::Contains("sha256 mismatch"));
  }
  SECTION("truncated") {
    overwrite(path, text_of(bytes).substr(0, 8'000));
    CHECK_THAT(why_broken(store, record), Catch::Contains("truncated"));
  }
  SECTION("a tail of zeros") {
    std::fill(bytes.begin() + 4'096, bytes.end(), std::uint8_t{0});
    overwrite(path, text_of(bytes));
    CHECK_THAT(why_broken(store, record), Catch::Contains("ends in zeros"));
  }
  SECTION("empty") {
    overwrite(path, "");
    CHECK_THAT(why_broken(store, record), Catch::Contains("empty"));
  }
  SECTION("one byte too long") {
    overwrite(path, text_of(bytes) + "x");
    CHECK_THAT(why_broken(store, record), Catch::Contains("9001 bytes, the manifest says 9000"));
  }
  SECTION("HTML") {
    overwrite(path, "<!DOCTYPE html><html>please log in</html>");
    CHECK_THAT(why_broken(store, record), Catch::Contains("HTML"));
  }
  SECTION("a Git LFS pointer") {
    overwrite(path, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9000\n");
    CHECK_THAT(why_broken(store, record), Catch::Contains("Git LFS pointer"));
  }
  SECTION("a folder") {
    fs::remove(path);
    fs::create_directory(path);
    CHECK_THAT(why_broken(store, record), Catch::Contains("not a regular file"));
  }
  SECTION("a FIFO, without waiting for a writer") {
    fs::remove(path);
    REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
    CHECK_THAT(why_broken(store, record), Catch::Contains("not a regular file"));
  }
  CHECK_THAT(why_broken(store, record), Catch::Contains(path));
}

TEST_CASE("a broken entry is replaced by a new inode, so a reader of the old one keeps its bytes") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  const auto bytes = synthetic_bytes(4, 3'000);
  const std::string path = store.install(verified(bytes)).value();
  overwrite(path, "broken");
  const auto reader = cubist::open_regular_file(path);
  REQUIRE(reader);
  const ino_t before = inode(path);
  CHECK(store.install(verified(bytes)));
  CHECK(inode(path) != before);
  std::uint8_t kept[6];
  REQUIRE(cubist::read_exactly_at(*reader, 0, kept, path));
  CHECK(std::string(kept, kept + 6) == "broken");
  CHECK(store.open_verified(record_of("k", bytes)).value());
}

TEST_CASE(
    "layers are searched in order, only the first is written, a good copy stands in for a bad") {
  const Scratch scratch;
  const auto bytes = synthetic_bytes(5, 2'000);
  const auto record = record_of("k", bytes);
  const Store base({scratch / "base", {}});
  const std::string in_base = base.install(verified(bytes)).value();
  const Store both({scratch / "top", {scratch / "absent", scratch / "base"}});
  CHECK(both.find(record).value() == in_base);
  CHECK(both.open_verified(record).value());
  CHECK_FALSE(fs::exists(scratch / "top"));

  const std::string in_top = both.install(verified(bytes)).value();
  CHECK(both.find(record).value() == in_top);
  overwrite(in_top, "short");
  CHECK(both.find(record).value() == in_base);
  CHECK(both.open_verified(record).value());
  overwrite(in_base, "short too");
  CHECK_THAT(why_broken(both, record), Catch::Contains(in_top));
}

TEST_CASE("find judges by size alone, check_entry by the bytes") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  auto bytes = synthetic_bytes(6, 700'000);
  const auto record = record_of("k", bytes);
  const std::string path = store.install(verified(bytes)).value();
  std::vector<std::uint8_t> buffer;
  CHECK(cubist::check_entry(path, record.sha256, record.size_bytes, buffer));
  bytes[600'000] ^= 0x80;
  overwrite(path, text_of(bytes));
  CHECK(store.find(record).value() == path);
  const auto checked = cubist::check_entry(path, record.sha256, record.size_bytes, buffer);
  REQUIRE_FALSE(checked);
  CHECK(checked.error().code() == StatusCode::kIntegrity);
  const auto missing = cubist::check_entry(path + "x", record.sha256, record.size_bytes, buffer);
  CHECK(missing.error().code() == StatusCode::kNotFound);
}

TEST_CASE("a group is published together, and an entry that came first keeps its inode") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  std::vector<Store::Staged> group;
  std::vector<cubist::VerifiedCubin> cubins;
  for (std::uint32_t i = 0; i < 20; ++i)
    cubins.push_back(verified(synthetic_bytes(100 + i, 1'000)));
  for (const auto& cubin : cubins) group.push_back(store.stage(cubin).value());
  CHECK_FALSE(store.find(record_of("k", synthetic_bytes(100, 1'000))).value());
  const std::string first = store.install(cubins[7]).value();
  const ino_t before = inode(first);
  REQUIRE(store.publish(group));
  group.clear();
  CHECK(inode(first) == before);
  CHECK(count_files(store.root()) == cubins.size());
}

TEST_CASE("a staged file that is not published leaves nothing behind") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  { const auto staged = store.stage(verified(synthetic_bytes(8, 100))).value(); }
  CHECK(count_files(store.root()) == 0);
}
