#include "registry/stored_bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "archive/zip_writer.h"
#include "base/log.h"
#include "registry/fetch.h"
#include "registry/store_check.h"
#include "registry/store_gc.h"
#include "registry/store_status.h"
#include "support/catch.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace cubist {
namespace {

namespace fs = std::filesystem;
using test::record_of;
using test::Scratch;
using test::synthetic_bytes;
using test::verified;

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kBytes = 3'000;

Sha256Digest digest_of_number(std::uint8_t number) {
  Sha256Digest digest;
  digest.bytes.fill(number);
  return digest;
}

/// A store with a bundle of kernels 0 ... count - 1, and none of them as an entry.
struct Shelved {
  Scratch scratch;
  Store store{{scratch / "store", {}}};
  std::vector<Bytes> bytes;
  std::vector<KernelRecord> records;
  std::string path = bundle_path(store.root(), digest_of_number(1));

  explicit Shelved(std::uint32_t count = 3) {
    for (std::uint32_t i = 0; i < count; ++i) {
      bytes.push_back(synthetic_bytes(i, kBytes + i));
      records.push_back(record_of("k" + std::to_string(i), bytes.back()));
    }
    put(path, zip());
  }

  Bytes zip() const {
    Bytes file;
    ZipWriter writer([&](std::span<const std::uint8_t> part) -> Status {
      file.insert(file.end(), part.begin(), part.end());
      return {};
    });
    REQUIRE(writer.add("bundle.json", pack_member({}, true)));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      REQUIRE(writer.add(entry_relative_path(records[i].sha256), pack_member(bytes[i], false)));
    }
    REQUIRE(writer.finish());
    return file;
  }
  static void put(const std::string& path, const Bytes& file) {
    fs::create_directories(fs::path(path).parent_path());
    fs::remove(path);
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(file.data()),
               static_cast<std::streamsize>(file.size()));
  }
  /// One byte of a kernel's packed data, turned round on disk.
  void damage(std::size_t kernel) const {
    Bytes file = zip();
    const auto at = std::search(file.begin(), file.end(), bytes[kernel].begin() + 1'000,
                                bytes[kernel].begin() + 1'016);
    REQUIRE(at != file.end());
    *at ^= 0x10;
    put(path, file);
  }
  Bytes served(std::size_t i) const {
    const auto cubin = store.open_verified(records[i]);
    if (!cubin || !*cubin) return {};
    return {(*cubin)->bytes().begin(), (*cubin)->bytes().end()};
  }
};

struct Warnings {
  std::vector<std::string> texts;
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level == LogLevel::kWarning) texts.emplace_back(text);
    });
  }
  ~Warnings() { set_log_sink({}); }
};

TEST_CASE("kernels of a bundle are there, and served as they are, without a write or a warning") {
  const Shelved shelved;
  const Warnings warnings;
  const auto before = fs::last_write_time(shelved.store.root());
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(shelved.served(i) == shelved.bytes[i]);
    CHECK(shelved.store.find(shelved.records[i]).value() == shelved.path);
  }
  CHECK_FALSE(shelved.store.find(record_of("other", synthetic_bytes(9, 10))).value());
  CHECK_FALSE(shelved.store.open_verified(record_of("other", synthetic_bytes(9, 10))).value());
  CHECK(fs::last_write_time(shelved.store.root()) == before);
  CHECK(std::distance(fs::directory_iterator(shelved.store.root()), {}) == 1);
  CHECK(warnings.texts.empty());
}

TEST_CASE("an entry goes before a bundle, and the entry of any layer before any bundle") {
  const Shelved shelved;
  const Store base({shelved.scratch / "base", {}});
  const std::string entry = base.install(verified(shelved.bytes[0])).value();
  const Store both({shelved.store.root(), {base.root()}});
  CHECK(both.find(shelved.records[0]).value() == entry);
  CHECK(both.locate(shelved.records[1]).value()->layer == 0);
  const Store other({base.root(), {shelved.store.root()}});
  CHECK(other.locate(shelved.records[1]).value()->layer == 1);
  CHECK(other.open_verified(shelved.records[1]).value());
}

TEST_CASE("where a kernel is an entry no bundle is opened") {
  const Shelved shelved;
  REQUIRE(shelved.store.install(verified(shelved.bytes[0])));
  std::ofstream(bundle_path(shelved.store.root(), digest_of_number(2))) << "no bundle";
  const Warnings warnings;
  CHECK(shelved.served(0) == shelved.bytes[0]);
  CHECK(shelved.store.find(shelved.records[0]).value());
  CHECK(warnings.texts.empty());
  CHECK(shelved.served(1) == shelved.bytes[1]);
  CHECK(warnings.texts.size() == 1);
}

TEST_CASE("a bundle in a store that cannot be written serves") {
  const Shelved shelved;
  ::chmod(shelved.path.c_str(), 0444);
  ::chmod((shelved.store.root() + "/bundles").c_str(), 0555);
  ::chmod(shelved.store.root().c_str(), 0555);
  CHECK(shelved.served(1) == shelved.bytes[1]);
  ::chmod(shelved.store.root().c_str(), 0755);
  ::chmod((shelved.store.root() + "/bundles").c_str(), 0755);
}

TEST_CASE("a damaged kernel is never served, its neighbours are, and a good entry wins") {
  const Shelved shelved;
  shelved.damage(1);
  const auto broken = shelved.store.open_verified(shelved.records[1]);
  REQUIRE_FALSE(broken);
  CHECK(broken.error().code() == StatusCode::kIntegrity);
  CHECK_THAT(broken.error().message(), Catch::Contains(shelved.records[1].sha256.hex()) &&
                                           Catch::Contains("verify --repair"));
  CHECK(shelved.served(0) == shelved.bytes[0]);
  std::vector<std::string> strangers;
  const auto found = check_entries(list_entries(shelved.store, strangers).value(), {}).value();
  CHECK(found.checked == 3);
  CHECK(found.findings.size() == 1);
  REQUIRE(shelved.store.install(verified(shelved.bytes[1])));
  CHECK(shelved.served(1) == shelved.bytes[1]);
  CHECK(check_entries(list_entries(shelved.store, strangers).value(), {}).value().findings.empty());
}

TEST_CASE("a broken entry is passed over for the bundle, with a warning") {
  const Shelved shelved;
  const std::string entry = shelved.store.install(verified(shelved.bytes[2])).value();
  ::chmod(entry.c_str(), 0644);
  std::ofstream(entry) << "rotten";
  const Warnings warnings;
  CHECK(shelved.served(2) == shelved.bytes[2]);
  REQUIRE(warnings.texts.size() == 1);
  CHECK_THAT(warnings.texts[0], Catch::Contains("used '" + shelved.path + "' instead"));
}

TEST_CASE("a directory that lies about a kernel gets nobody wrong bytes") {
  Shelved shelved;
  // Each says that the other's bytes are its own.
  std::swap(shelved.bytes[0], shelved.bytes[1]);
  Shelved::put(shelved.path, shelved.zip());
  std::swap(shelved.bytes[0], shelved.bytes[1]);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto opened = shelved.store.open_verified(shelved.records[i]);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code() == StatusCode::kIntegrity);
  }
  CHECK(shelved.served(2) == shelved.bytes[2]);
  CHECK_FALSE(shelved.store.find(shelved.records[0]).value());  // the size is not the record's
}

TEST_CASE("what has a bundle's name and is none is warned of once, and serves nothing") {
  const Shelved shelved;
  const std::string bad = bundle_path(shelved.store.root(), digest_of_number(2));
  const std::string link = bundle_path(shelved.store.root(), digest_of_number(3));
  const std::string pipe = bundle_path(shelved.store.root(), digest_of_number(4));
  std::ofstream(bad) << "<html>";
  fs::create_symlink(shelved.path, link);
  REQUIRE(::mkfifo(pipe.c_str(), 0644) == 0);
  std::ofstream(shelved.store.root() + "/bundles/note.txt") << "x";
  const Warnings warnings;
  for (int i = 0; i < 3; ++i) CHECK(shelved.served(0) == shelved.bytes[0]);
  CHECK(warnings.texts.size() == 3);
  std::vector<std::string> strangers;
  const auto entries = list_entries(shelved.store, strangers).value();
  CHECK(strangers == std::vector<std::string>{shelved.store.root() + "/bundles/note.txt"});
  CHECK(check_entries(entries, {}).value().findings.size() == 3);
}

TEST_CASE("a folder of bundles that is a link is not followed") {
  const Shelved shelved;
  fs::rename(shelved.store.root() + "/bundles", shelved.scratch / "elsewhere");
  fs::create_symlink(shelved.scratch / "elsewhere", shelved.store.root() + "/bundles");
  CHECK_FALSE(shelved.store.open_verified(shelved.records[0]).value());
}

TEST_CASE("bundles that come and go are seen by a store that is open") {
  const Shelved shelved;
  CHECK(shelved.served(0) == shelved.bytes[0]);
  fs::remove(shelved.path);
  CHECK_FALSE(shelved.store.find(shelved.records[0]).value());
  Shelved::put(bundle_path(shelved.store.root(), digest_of_number(7)), shelved.zip());
  CHECK(shelved.served(0) == shelved.bytes[0]);
}

TEST_CASE("threads may ask for kernels of bundles at once") {
  const Shelved shelved(8);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (std::size_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 8; ++i) {
        const std::size_t kernel = (t + i) % 8;
        if (shelved.served(kernel) != shelved.bytes[kernel]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a bundle is collected as a whole, unless it is used or a kernel of it is pinned") {
  const Shelved shelved;
  const std::uint64_t size = fs::file_size(shelved.path);
  GcOptions options;
  options.max_bytes = 10;
  options.pinned = {shelved.records[2].sha256};
  GcReport report = collect_garbage(shelved.store, options).value();
  CHECK(report.kept_pinned == 1);
  CHECK(report.bytes_before == size);
  options.pinned.clear();
  CHECK(shelved.served(0) == shelved.bytes[0]);  // from now on this store holds it
  CHECK(collect_garbage(shelved.store, options).value().kept_in_use == 1);
  const Store other({shelved.store.root(), {}});
  CHECK(collect_garbage(other, options).value().kept_in_use == 1);
  CHECK(fs::exists(shelved.path));
}

TEST_CASE("a bundle that nobody uses goes when it is the oldest, and no sooner") {
  const Shelved shelved;
  const std::string entry = shelved.store.install(verified(synthetic_bytes(50, 1'000))).value();
  const timespec old[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  REQUIRE(::utimensat(AT_FDCWD, entry.c_str(), old, 0) == 0);
  GcOptions options;
  options.max_bytes = fs::file_size(shelved.path);
  CHECK(collect_garbage(shelved.store, options).value().removed == std::vector<std::string>{entry});
  options.max_bytes -= 1;
  options.dry_run = true;
  CHECK(collect_garbage(shelved.store, options).value().removed ==
        std::vector<std::string>{shelved.path});
  options.dry_run = false;
  CHECK(collect_garbage(shelved.store, options).value().removed.size() == 1);
  CHECK_FALSE(fs::exists(shelved.path));
}

TEST_CASE("status counts kernels of bundles, and says which layer serves them") {
  const Shelved shelved;
  const Store over({shelved.scratch / "top", {shelved.store.root()}});
  const auto layers = layer_status(over);
  CHECK(layers[0].bundles == 0);
  CHECK(layers[1].entries == 0);
  CHECK(layers[1].bundles == 1);
  CHECK(layers[1].bundled_kernels == 3);
  CHECK(layers[1].bundle_bytes == fs::file_size(shelved.path));
  const auto found =
      coverage(over, std::vector<const KernelRecord*>{&shelved.records[0], &shelved.records[1]});
  CHECK(found.value().served == std::vector<std::size_t>{0, 2});
  CHECK(found.value().complete());
}

TEST_CASE("fetch takes a kernel in a bundle for present, and mends a broken one by an entry") {
  const Shelved shelved;
  Pack pack;
  std::vector<FetchItem> items;
  for (const KernelRecord& record : shelved.records) items.push_back({&pack, &record});
  FetchOptions options;
  options.offline = true;
  const auto report = fetch(shelved.store, items, options).value();
  CHECK(report.count(FetchedFile::State::kPresent) == 3);
  CHECK(report.files[0].path == shelved.path);
  CHECK_FALSE(fs::exists(shelved.store.root() + "/sha256"));

  shelved.damage(0);
  const Store healthy({shelved.scratch / "healthy", {}});
  REQUIRE(healthy.install(verified(shelved.bytes[0])));
  options.sources = {parse_source(healthy.root()).value()};
  options.rehash_present = true;
  CHECK(fetch(shelved.store, items, options).value().count(FetchedFile::State::kFetched) == 1);
  CHECK(shelved.served(0) == shelved.bytes[0]);
}

TEST_CASE("a store whose kernels lie in bundles is a source") {
  const Shelved shelved;
  const Store target({shelved.scratch / "target", {}});
  Pack pack;
  std::vector<FetchItem> items;
  for (const KernelRecord& record : shelved.records) items.push_back({&pack, &record});
  FetchOptions options;
  options.sources = {parse_source(shelved.store.root()).value()};
  const auto report = fetch(target, items, options).value();
  CHECK(report.count(FetchedFile::State::kFetched) == 3);
  CHECK(target.open_verified(shelved.records[2]).value());
}

}  // namespace
}  // namespace cubist
