// What users of other kernel packs reported of shared, read-only and network stores, with the
// behaviour that would have been right. docs/results/store-reliability.md lists the reports.
#include <sys/mount.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/log.h"
#include "registry/fetch.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/environment.h"
#include "support/made_release.h"
#include "support/processes.h"

namespace fs = std::filesystem;
using cubist::KernelRecord;
using cubist::Source;
using cubist::Store;
using cubist::test::enter_mount_namespace;
using cubist::test::Environment;
using cubist::test::finish_process;
using cubist::test::impatient_options;
using cubist::test::in_child;
using cubist::test::MadeRelease;
using cubist::test::start_process;
using std::chrono::milliseconds;

namespace {

Source folder(const MadeRelease& release) {
  return {Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix};
}

bool same_bytes(const cubist::VerifiedCubin& cubin, const std::vector<std::uint8_t>& bytes) {
  return std::equal(bytes.begin(), bytes.end(), cubin.bytes().begin(), cubin.bytes().end());
}

}  // namespace

TEST_CASE("a home folder on a read-only mount: kernels come from memory, with one warning") {
  MadeRelease release(2, 30'000);
  release.set_sources({folder(release)});
  const std::string home = release.scratch() / "home";
  fs::create_directories(home);
  const std::string outcome = in_child([&]() -> std::string {
    if (!enter_mount_namespace() || ::mount("none", home.c_str(), "tmpfs", MS_RDONLY, "") != 0) {
      return "no mounts";
    }
    const Environment environment(Environment::Values{
        {"HOME", home}, {"XDG_CACHE_HOME", std::nullopt}, {"CUBIST_STORE", std::nullopt}});
    int warnings = 0;
    cubist::set_log_sink([&](cubist::LogLevel, std::string_view) { ++warnings; });
    const auto store = Store::open();
    if (!store) return store.error().message();
    cubist::FetchOptions options = impatient_options();
    options.memory_if_unwritable = true;
    const auto report = fetch(*store, release.items(), options);
    cubist::set_log_sink({});
    if (!report) return report.error().message();
    int right = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto& cubin = report->files[i].cubin;
      right += cubin && same_bytes(*cubin, release.bytes(i)) ? 1 : 0;
    }
    return std::to_string(right) + " right, " + std::to_string(warnings) + " warning";
  });
  if (outcome == "no mounts") {
    WARN("mounts are not permitted here: not tested");
    return;
  }
  CHECK(outcome == "2 right, 1 warning");
}

TEST_CASE("releases that differ under one name never mix: a record finds its own bytes or none") {
  // Two writers publish what they call kernel_00000: other bytes, other size, other traits.
  MadeRelease one(1, 40'000);
  MadeRelease two(1, 41'000);
  one.set_sources({folder(one)});
  two.set_sources({folder(two)});
  REQUIRE(one.kernels()[0].name == two.kernels()[0].name);
  const Store shared({one.store_root(), {}});
  std::vector<pid_t> processes;
  for (int i = 0; i < 6; ++i) {
    MadeRelease& mine = i % 2 == 0 ? one : two;
    processes.push_back(start_process([&] {
      for (int round = 0; round < 30; ++round) {
        const auto cubin = open_or_fetch(shared, mine.items()[0], impatient_options());
        if (!cubin || !same_bytes(*cubin, mine.bytes(0))) return 1;
        if (round % 10 == 9)
          fs::remove(cubist::entry_path(shared.root(), mine.kernels()[0].sha256));
      }
      return 0;
    }));
  }
  for (const pid_t pid : processes) CHECK(finish_process(pid) == 0);
  // Metadata of one with the digest of the other is refused, not served.
  KernelRecord mixed = one.kernels()[0];
  mixed.sha256 = two.kernels()[0].sha256;
  REQUIRE(open_or_fetch(shared, two.items()[0], impatient_options()));
  const auto refused = shared.open_verified(mixed);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == cubist::StatusCode::kIntegrity);
}

TEST_CASE("an empty file, folder, FIFO, link or device that appears for a moment is never valid") {
  MadeRelease release(1, 20'000);
  release.set_sources({folder(release)});
  const std::string path = cubist::entry_path(release.store_root(), release.kernels()[0].sha256);
  fs::create_directories(fs::path(path).parent_path());
  std::vector<pid_t> readers;
  for (int i = 0; i < 8; ++i) {
    readers.push_back(start_process([&] {
      int served = 0;
      const auto deadline = std::chrono::steady_clock::now() + milliseconds(1'500);
      while (std::chrono::steady_clock::now() < deadline) {
        const auto found = release.store().find(release.kernels()[0]);
        if (found && *found) return 2;
        const auto opened = release.store().open_verified(release.kernels()[0]);
        served += opened && *opened ? 1 : 0;
        std::this_thread::sleep_for(milliseconds(1));
      }
      return served;
    }));
  }
  for (int round = 0; round < 60; ++round) {
    switch (round % 5) {
      case 0:
        std::ofstream(path).flush();
        break;
      case 1:
        fs::create_directory(path);
        break;
      case 2:
        CHECK(::mkfifo(path.c_str(), 0666) == 0);
        break;
      case 3:
        fs::create_symlink("nowhere", path);
        break;
      default:
        fs::create_symlink("/dev/zero", path);
        break;
    }
    std::this_thread::sleep_for(milliseconds(20));
    fs::remove(path);
  }
  for (const pid_t pid : readers) CHECK(finish_process(pid) == 0);
  CHECK(open_or_fetch(release.store(), release.items()[0], impatient_options()));
  CHECK(release.in_store(0));
}

TEST_CASE("whatever lies where an entry belongs, the next fetch puts the right file there") {
  MadeRelease release(1, 20'000);
  release.set_sources({folder(release)});
  const std::string path = cubist::entry_path(release.store_root(), release.kernels()[0].sha256);
  fs::create_directories(fs::path(path).parent_path());
  const std::string victim = release.scratch() / "victim";
  std::ofstream(victim) << "not ours";
  SECTION("an empty file") { std::ofstream(path).flush(); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(path.c_str(), 0666) == 0); }
  SECTION("a link to a file elsewhere") { fs::create_symlink(victim, path); }
  SECTION("a link to nothing") { fs::create_symlink("nowhere", path); }
  SECTION("a device") { fs::create_symlink("/dev/zero", path); }
  REQUIRE(fetch(release.store(), release.items(), impatient_options()));
  CHECK(release.in_store(0));
  CHECK(fs::is_regular_file(fs::symlink_status(path)));
  std::ifstream stream(victim);
  std::string text;
  std::getline(stream, text);
  CHECK(text == "not ours");
}
