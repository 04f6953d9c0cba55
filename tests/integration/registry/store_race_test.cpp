#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "registry/store.h"
#include "support/catch.h"
#include "support/processes.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace fs = std::filesystem;
using cubist::Store;
using cubist::test::finish_process;
using cubist::test::record_of;
using cubist::test::Scratch;
using cubist::test::start_process;
using cubist::test::synthetic_bytes;
using cubist::test::verified;

namespace {

std::size_t count_files(const std::string& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    count += entry.is_regular_file();
  return count;
}

constexpr int kLooks = 200;

/// Looks at one entry while it is written and for a while after it appeared (kLooks times: longer
/// than eight writers take): 0 if it was only ever absent or whole, and of one inode. Gives up
/// after a minute without an entry.
int watch(const Store& store, const cubist::KernelRecord& record) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  ino_t seen = 0;
  for (int looks_at_entry = 0; looks_at_entry < kLooks;) {
    const auto opened = store.open_verified(record);
    if (!opened) return 1;
    if (!*opened) {
      if (std::chrono::steady_clock::now() > deadline) return 4;
      std::this_thread::yield();
      continue;
    }
    ++looks_at_entry;
    struct stat info {};
    const std::string path = cubist::entry_path(store.root(), record.sha256);
    if (::stat(path.c_str(), &info) != 0) return 2;
    if (seen != 0 && seen != info.st_ino) return 3;
    seen = info.st_ino;
    if (looks_at_entry % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return 0;
}

}  // namespace

TEST_CASE("eight processes install one digest: one copy, one inode, readers see absent or whole") {
  for (std::uint32_t round = 0; round < 20; ++round) {
    const Scratch scratch;
    const Store store({scratch / "store", {}});
    const auto bytes = synthetic_bytes(round, 130'000);
    const auto cubin = verified(bytes);
    std::vector<pid_t> writers;
    const pid_t watcher = start_process([&] { return watch(store, record_of("k", bytes)); });
    for (int i = 0; i < 8; ++i) {
      writers.push_back(start_process([&] { return store.install(cubin) ? 0 : 1; }));
    }
    for (const pid_t pid : writers) CHECK(finish_process(pid) == 0);
    CHECK(finish_process(watcher) == 0);
    CHECK(count_files(store.root()) == 1);
  }
}

TEST_CASE("eight processes repair one broken entry and all end with a good one") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  const auto bytes = synthetic_bytes(1, 50'000);
  const auto cubin = verified(bytes);
  const std::string path = store.install(cubin).value();
  fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
  fs::resize_file(path, 1'000);
  std::vector<pid_t> writers;
  for (int i = 0; i < 8; ++i) {
    writers.push_back(start_process([&] {
      if (!store.install(cubin)) return 1;
      return store.open_verified(record_of("k", bytes)).value() ? 0 : 2;
    }));
  }
  for (const pid_t pid : writers) CHECK(finish_process(pid) == 0);
  CHECK(count_files(store.root()) == 1);
}

TEST_CASE("writers killed at random moments leave no wrong entry, and the next run clears up") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  std::vector<cubist::VerifiedCubin> cubins;
  std::vector<cubist::KernelRecord> records;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto bytes = synthetic_bytes(i, 60'000);
    cubins.push_back(verified(bytes));
    records.push_back(record_of("k", bytes));
  }
  std::mt19937 random(7);
  int interrupted = 0;
  for (int round = 0; round < 60; ++round) {
    const pid_t writer = start_process([&] {
      for (const auto& cubin : cubins) {
        if (!store.install(cubin)) return 1;
      }
      return 0;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 20'000));
    ::kill(writer, SIGKILL);
    if (finish_process(writer) != 0) ++interrupted;
    for (const auto& record : records) REQUIRE(store.open_verified(record));
    if (round % 10 == 9) fs::remove_all(store.root() + "/sha256");
  }
  CHECK(interrupted > 10);
  store.sweep();
  CHECK(fs::is_empty(store.root() + "/tmp"));
  for (const auto& cubin : cubins) CHECK(store.install(cubin));
  CHECK(count_files(store.root()) == cubins.size());
}
