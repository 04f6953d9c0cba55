#include "registry/store_gc.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "registry/store_status.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace fs = std::filesystem;
using cubist::collect_garbage;
using cubist::GcOptions;
using cubist::GcReport;
using cubist::KernelRecord;
using cubist::Store;
using cubist::test::in_child;
using cubist::test::record_of;
using cubist::test::Scratch;
using cubist::test::synthetic_bytes;
using cubist::test::verified;

namespace {

constexpr std::size_t kBytes = 1'000;

/// A store with `count` entries, entry i fetched i minutes after entry 0.
struct Filled {
  Scratch scratch;
  Store store{{scratch / "store", {}}};
  std::vector<KernelRecord> records;

  explicit Filled(std::uint32_t count) {
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto bytes = synthetic_bytes(i, kBytes);
      records.push_back(record_of("k" + std::to_string(i), bytes));
      const std::string path = store.install(verified(bytes)).value();
      const timespec times[2] = {{1'600'000'000 + 60 * i, 0}, {1'600'000'000 + 60 * i, 0}};
      REQUIRE(::utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
    }
  }
  bool has(std::size_t i) const { return store.find(records[i]).value().has_value(); }
  GcReport collect(GcOptions options) const { return collect_garbage(store, options).value(); }
};

GcOptions at_most(std::uint64_t entries) {
  GcOptions options;
  options.max_bytes = entries * kBytes;
  return options;
}

}  // namespace

TEST_CASE("the entries fetched longest ago go, until the rest fits and not one more") {
  const Filled filled(10);
  const GcReport report = filled.collect(at_most(4));
  CHECK(report.removed.size() == 6);
  CHECK(report.bytes_before == 10 * kBytes);
  CHECK(report.bytes_after == 4 * kBytes);
  for (std::size_t i = 0; i < 10; ++i) CHECK(filled.has(i) == (i >= 6));
  CHECK(filled.collect(at_most(4)).removed.empty());
}

TEST_CASE("a dry run says the same and removes nothing, not even a lock file") {
  const Filled filled(5);
  GcOptions options = at_most(2);
  options.dry_run = true;
  CHECK(filled.collect(options).removed.size() == 3);
  for (std::size_t i = 0; i < 5; ++i) CHECK(filled.has(i));
  CHECK_FALSE(fs::exists(filled.store.root() + "/lock"));
}

TEST_CASE("pinned entries and those in use stay, whatever the cap") {
  const Filled filled(6);
  const auto held = filled.store.hold(filled.records[1].sha256).value();
  REQUIRE(held);
  GcOptions options = at_most(0);
  options.pinned = {filled.records[0].sha256, filled.records[5].sha256};
  const GcReport report = filled.collect(options);
  CHECK(report.removed.size() == 3);
  CHECK(report.kept_in_use == 1);
  CHECK(report.kept_pinned == 2);
  for (std::size_t i = 0; i < 6; ++i) CHECK(filled.has(i) == (i < 2 || i == 5));
}

TEST_CASE("an entry held by another process stays until that process ends") {
  const Filled filled(2);
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t holder = ::fork();
  REQUIRE(holder >= 0);
  if (holder == 0) {
    const auto held = filled.store.hold(filled.records[0].sha256);
    if (::write(ready[1], "x", 1) != 1) ::_exit(1);
    ::pause();
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  CHECK(filled.collect(at_most(0)).kept_in_use == 1);
  CHECK(filled.has(0));
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  CHECK(filled.collect(at_most(0)).kept_in_use == 0);
  CHECK_FALSE(filled.has(0));
}

TEST_CASE("two collectors at once end just under the cap, not far below") {
  for (int round = 0; round < 10; ++round) {
    const Filled filled(40);
    std::vector<pid_t> collectors;
    for (int i = 0; i < 2; ++i) {
      const pid_t pid = ::fork();
      REQUIRE(pid >= 0);
      if (pid == 0) ::_exit(collect_garbage(filled.store, at_most(15)) ? 0 : 1);
      collectors.push_back(pid);
    }
    for (const pid_t pid : collectors) {
      int state = 0;
      ::waitpid(pid, &state, 0);
      CHECK(state == 0);
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < 40; ++i) left += filled.has(i) ? 1 : 0;
    CHECK(left == 15);
  }
}

TEST_CASE("a store that is not there is nothing to collect, and what dead writers left goes") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  CHECK(collect_garbage(store, at_most(0)).value().removed.empty());
  CHECK_FALSE(fs::exists(store.root()));
  const std::string killed = in_child([&]() -> std::string {
    const auto staged = store.stage(verified(synthetic_bytes(1, 10))).value();
    ::kill(::getpid(), SIGKILL);
    return "survived";
  });
  CHECK(collect_garbage(store, at_most(5)).value().unfinished_removed == 1);
}

TEST_CASE("base layers are never collected") {
  const Filled filled(3);
  const Store overlay({filled.scratch / "top", {filled.store.root()}});
  REQUIRE(overlay.install(verified(synthetic_bytes(77, kBytes))));
  CHECK(collect_garbage(overlay, at_most(0)).value().removed.size() == 1);
  for (std::size_t i = 0; i < 3; ++i) CHECK(filled.has(i));
}

TEST_CASE("status counts layers and says which serves what") {
  const Filled filled(4);
  const Store both({filled.scratch / "top", {filled.store.root(), filled.scratch / "none"}});
  const auto own = synthetic_bytes(50, kBytes);
  REQUIRE(both.install(verified(own)));
  const auto layers = layer_status(both);
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].entries == 1);
  CHECK(layers[0].writable);
  CHECK(layers[1].entries == 4);
  CHECK(layers[1].bytes == 4 * kBytes);
  CHECK(layers[1].free_bytes);
  CHECK_FALSE(layers[2].exists);

  const KernelRecord mine = record_of("own", own);
  const KernelRecord absent = record_of("absent", synthetic_bytes(60, kBytes));
  const auto found =
      coverage(both, std::vector<const KernelRecord*>{&mine, &filled.records[0], &filled.records[3],
                                                      &filled.records[3], &absent});
  REQUIRE(found);
  CHECK(found->served == std::vector<std::size_t>{1, 2, 0});
  REQUIRE(found->missing.size() == 1);
  CHECK(found->missing[0]->name == "absent");
  CHECK(found->missing_bytes == kBytes);
}
