// What somebody who can write into a store may have put in the place of its files and folders: no
// link is followed, no FIFO waited for, no device read.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "registry/digest_lock.h"
#include "registry/directory_cache.h"
#include "registry/partial_file.h"
#include "registry/store.h"
#include "registry/store_check.h"
#include "registry/store_file.h"
#include "registry/store_gc.h"
#include "support/catch.h"
#include "support/made_release.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace fs = std::filesystem;

namespace cubist {
namespace {

using test::read_bytes;
using test::record_of;
using test::Scratch;
using test::synthetic_bytes;
using test::verified;
using test::write_bytes;

enum class Plant { kLink, kDanglingLink, kFifo, kDevice };
constexpr Plant kPlants[] = {Plant::kLink, Plant::kDanglingLink, Plant::kFifo, Plant::kDevice};

/// False where the machine does not permit it: devices need root.
bool plant(Plant what, const std::string& path, const std::string& target) {
  fs::create_directories(fs::path(path).parent_path());
  switch (what) {
    case Plant::kLink:
      return ::symlink(target.c_str(), path.c_str()) == 0;
    case Plant::kDanglingLink:
      return ::symlink((target + ".none").c_str(), path.c_str()) == 0;
    case Plant::kFifo:
      return ::mkfifo(path.c_str(), 0666) == 0;
    case Plant::kDevice:
      return ::mknod(path.c_str(), S_IFCHR | 0666, 0x103) == 0;  // /dev/null
  }
  return false;
}

/// A store, a kernel, and a folder outside that must stay as it is.
struct Rig {
  Scratch scratch;
  std::string root = scratch / "store";
  std::string outside = scratch / "outside";
  Store store{StoreOptions{root, {}}};
  std::vector<std::uint8_t> bytes = synthetic_bytes(7, 20'000);
  KernelRecord record = record_of("k", bytes);
  std::string entry = entry_path(root, record.sha256);

  Rig() { fs::create_directories(outside); }
  /// A good file outside, of which nothing may be taken or changed.
  std::string decoy() {
    const std::string path = outside + "/decoy";
    write_bytes(path, bytes);
    return path;
  }
};

/// Names and bytes below a folder.
std::string picture(const std::string& folder) {
  std::string text;
  std::vector<fs::path> paths;
  for (const auto& one : fs::recursive_directory_iterator(folder)) paths.push_back(one.path());
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    text += path.string() + "\n";
    if (fs::is_regular_file(path)) text += sha256(read_bytes(path.string())).hex() + "\n";
  }
  return text;
}

}  // namespace

TEST_CASE("an entry that is a link, FIFO or device is broken, and an install replaces it") {
  for (const Plant what : kPlants) {
    Rig rig;
    const std::string decoy = rig.decoy();
    if (!plant(what, rig.entry, decoy)) continue;
    const std::string before = picture(rig.outside);
    const auto opened = rig.store.open_verified(rig.record);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code() == StatusCode::kIntegrity);
    CHECK_THAT(opened.error().message(), Catch::Contains("is not a regular file"));
    CHECK_FALSE(rig.store.find(rig.record).value());
    CHECK_FALSE(rig.store.hold(rig.record.sha256));
    std::vector<std::uint8_t> buffer;
    CHECK_FALSE(check_entry(rig.entry, rig.record.sha256, rig.bytes.size(), buffer));
    REQUIRE(rig.store.install(verified(rig.bytes)));
    CHECK(fs::is_regular_file(fs::symlink_status(rig.entry)));
    CHECK(rig.store.open_verified(rig.record).value());
    CHECK(picture(rig.outside) == before);
  }
}

TEST_CASE("gc removes no more than a planted link, and never what it leads to") {
  Rig rig;
  const std::string decoy = rig.decoy();
  REQUIRE(plant(Plant::kLink, rig.entry, decoy));
  const std::string before = picture(rig.outside);
  CHECK(collect_garbage(rig.store, {}));
  CHECK(picture(rig.outside) == before);
  fs::remove_all(rig.root + "/sha256");
  REQUIRE(rig.store.install(verified(rig.bytes)));
  const fs::path shard = fs::path(rig.entry).parent_path();
  fs::rename(shard, rig.outside + "/shard");
  fs::create_directory_symlink(rig.outside + "/shard", shard);
  const std::string whole = picture(rig.outside);
  const auto report = collect_garbage(rig.store, {});
  REQUIRE(report);
  CHECK(report->removed.empty());
  CHECK(picture(rig.outside) == whole);
}

TEST_CASE("a folder of entries that is a link is not looked into, and not written into") {
  for (const char* step : {"sha256", "shard"}) {
    CAPTURE(step);
    Rig rig;
    const fs::path shard = fs::path(rig.entry).parent_path();
    const fs::path place = std::string_view(step) == "shard" ? shard : shard.parent_path();
    // Beyond the link lies a good entry, which would be found if it were followed.
    REQUIRE(rig.store.install(verified(rig.bytes)));
    fs::rename(place, rig.outside + "/moved");
    fs::create_directory_symlink(rig.outside + "/moved", place);
    const std::string before = picture(rig.outside);
    CHECK_FALSE(rig.store.open_verified(rig.record).value());
    CHECK_FALSE(rig.store.find(rig.record).value());
    std::vector<std::string> strangers;
    CHECK(list_entries(rig.store, strangers).value().empty());
    const auto other = verified(synthetic_bytes(8, 30'000));
    const auto refused = rig.store.install(verified(rig.bytes));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kIo);
    CHECK_THAT(refused.error().message(),
               Catch::Contains(place.string()) && Catch::Contains("a file or a link stands where"));
    CHECK(picture(rig.outside) == before);
    CHECK(fs::is_empty(rig.root + "/tmp"));
  }
}

TEST_CASE("tmp that is a link takes no file, and the sweep does not follow it") {
  Rig rig;
  // Unlocked files of another user's tmp, which a sweep would remove.
  write_bytes(rig.outside + "/1-aa.part", rig.bytes);
  write_bytes(rig.outside + "/x.resume", rig.bytes);
  REQUIRE(plant(Plant::kLink, rig.root + "/tmp", rig.outside));
  const std::string before = picture(rig.outside);
  CHECK(rig.store.sweep() == 0);
  const auto refused = rig.store.install(verified(rig.bytes));
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains(rig.root + "/tmp"));
  CHECK(picture(rig.outside) == before);
}

TEST_CASE("what is planted in tmp is passed over by the sweep") {
  for (const Plant what : kPlants) {
    Rig rig;
    const std::string decoy = rig.decoy();
    if (!plant(what, rig.root + "/tmp/1-aa.part", decoy)) continue;
    const std::string before = picture(rig.outside);
    CHECK(rig.store.sweep() == 0);
    CHECK(rig.store.install(verified(rig.bytes)));
    CHECK(picture(rig.outside) == before);
  }
}

TEST_CASE("a planted rest of a stopped fetch is removed and not read") {
  for (const Plant what : kPlants) {
    Rig rig;
    const std::string key(64, 'k');
    const std::string real = rig.outside + "/rest";
    const std::string head = "cubist partial 1\n" + key + "\nvalidator\nbytes";
    write_bytes(real, {head.begin(), head.end()});
    const std::string path = partial_path(rig.root, rig.record.sha256);
    if (!plant(what, path, real)) continue;
    const std::string before = picture(rig.outside);
    CHECK(take_partial(rig.root, rig.record.sha256, key, 1'000) == nullptr);
    CHECK_FALSE(fs::exists(fs::symlink_status(path)));
    CHECK(picture(rig.outside) == before);
  }
}

TEST_CASE("a planted index is passed over, also where its folder is a link") {
  for (const Plant what : kPlants) {
    Rig rig;
    const DirectoryCache cache(rig.store, "key");
    const std::string name =
        sha256({reinterpret_cast<const std::uint8_t*>("key"), 3}).hex() + ".dir";
    const std::string decoy = rig.decoy();
    if (!plant(what, rig.root + "/index/" + name, decoy)) continue;
    const std::string before = picture(rig.outside);
    CHECK_FALSE(cache.load());
    cache.remove();
    CHECK_FALSE(fs::exists(fs::symlink_status(rig.root + "/index/" + name)));
    CHECK(picture(rig.outside) == before);
    fs::remove_all(rig.root + "/index");
    REQUIRE(plant(Plant::kLink, rig.root + "/index", rig.outside));
    write_bytes(rig.outside + "/" + name, rig.bytes);
    CHECK_FALSE(cache.load());
    cache.remove();
    CHECK(fs::exists(rig.outside + "/" + name));
  }
}

TEST_CASE("a lock that is no file is not used, nor made where a link leads") {
  for (const Plant what : kPlants) {
    Rig rig;
    if (!plant(what, rig.root + "/lock", rig.outside + "/lock")) continue;
    DigestLocks locks(rig.root);
    CHECK(locks.try_take(rig.record.sha256) == DigestLocks::Outcome::kUnavailable);
    CHECK(fs::is_empty(rig.outside));
    CHECK(rig.store.install(verified(rig.bytes)));
  }
}

TEST_CASE("the root itself, and the way to it, may be links") {
  Rig rig;
  fs::create_directories(rig.outside + "/real");
  fs::create_directory_symlink(rig.outside + "/real", rig.scratch / "way");
  const Store store({rig.scratch / "way", {}});
  REQUIRE(store.install(verified(rig.bytes)));
  CHECK(store.open_verified(rig.record).value());
  CHECK(fs::exists(rig.outside + "/real/sha256"));
}

TEST_CASE("paths are cut at the root") {
  Rig rig;
  REQUIRE(rig.store.install(verified(rig.bytes)));
  CHECK(open_in_store(rig.entry, 3, O_RDONLY).valid());
  CHECK(open_in_store(rig.entry, 20, O_RDONLY).valid());
  CHECK(std::string(file_name_of("/a/b")) == "b");
  CHECK(std::string(file_name_of("b")) == "b");
  CHECK_FALSE(open_in_store("/nowhere/sha256/aa/x", 3, O_RDONLY).valid());
  CHECK(open_in_store("/dev", 1, O_RDONLY | O_DIRECTORY).valid());
  CHECK(read_in_store(rig.entry, 3, 10).error().code() == StatusCode::kIntegrity);
  CHECK(read_in_store(rig.entry + "x", 3, 10).error().code() == StatusCode::kNotFound);
}

}  // namespace cubist
