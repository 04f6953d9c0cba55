#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "registry/store.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/scratch.h"
#include "support/synthetic.h"

namespace fs = std::filesystem;
using cubist::Store;
using cubist::test::enter_mount_namespace;
using cubist::test::in_child;
using cubist::test::record_of;
using cubist::test::Scratch;
using cubist::test::synthetic_bytes;
using cubist::test::verified;

namespace {

constexpr const char* kNoMounts = "no mounts";

std::size_t count_entries(const std::string& folder) {
  std::size_t count = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    count += entry.is_regular_file();
  return count;
}

std::string install_outcome(const Store& store, const cubist::VerifiedCubin& cubin) {
  const auto installed = store.install(cubin);
  if (installed) return "ok";
  return std::string(to_string(installed.error().code())) + " " + installed.error().message();
}

/// Root may do everything; these tests are about somebody who may not.
void become_nobody() {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) ::_exit(2);
}

}  // namespace

TEST_CASE(
    "a full disk is named with the bytes needed and free, and nothing is left of the attempt") {
  const Scratch scratch;
  const std::string outcome = in_child([&]() -> std::string {
    if (!enter_mount_namespace()) return kNoMounts;
    if (::mount("none", scratch.path().c_str(), "tmpfs", 0, "size=1m") != 0) return kNoMounts;
    const Store store({scratch / "store", {}});
    const auto small = synthetic_bytes(1, 100'000);
    if (install_outcome(store, verified(small)) != "ok") return "the small one failed";
    std::string text = install_outcome(store, verified(synthetic_bytes(2, 2 << 20)));
    const bool kept = store.open_verified(record_of("k", small)).value().has_value();
    return text + " | entries " + std::to_string(count_entries(scratch.path())) +
           (kept ? " kept" : " lost");
  });
  if (outcome == kNoMounts) {
    WARN("mounts are not permitted here: full disk not tested");
    return;
  }
  CHECK_THAT(outcome, Catch::StartsWith("io cannot write"));
  CHECK_THAT(outcome, Catch::Contains("No space left on device; 2097152 bytes are needed, "));
  CHECK_THAT(outcome, Catch::Contains("CUBIST_STORE"));
  CHECK_THAT(outcome, Catch::EndsWith("entries 1 kept"));
}

TEST_CASE("a read-only store serves what it has and names what it cannot take") {
  const Scratch scratch;
  const auto bytes = synthetic_bytes(3, 1'000);
  const std::string outcome = in_child([&]() -> std::string {
    if (!enter_mount_namespace()) return kNoMounts;
    const char* folder = scratch.path().c_str();
    if (::mount("none", folder, "tmpfs", 0, "") != 0) return kNoMounts;
    const Store store({scratch / "store", {}});
    if (install_outcome(store, verified(bytes)) != "ok") return "the first one failed";
    if (::mount("none", folder, nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) return kNoMounts;
    const bool served = store.open_verified(record_of("k", bytes)).value().has_value();
    const std::string again = install_outcome(store, verified(bytes));
    return (served && again == "ok" ? "served; " : "not served; ") +
           install_outcome(store, verified(synthetic_bytes(4, 1'000)));
  });
  if (outcome == kNoMounts) {
    WARN("mounts are not permitted here: read-only store not tested");
    return;
  }
  CHECK_THAT(outcome, Catch::StartsWith("served; io cannot create"));
  CHECK_THAT(outcome, Catch::Contains("Read-only file system"));
}

TEST_CASE(
    "a store of somebody else: not writable is named, not readable is not taken for missing") {
  const Scratch scratch;
  ::chmod(scratch.path().c_str(), 0755);
  const auto bytes = synthetic_bytes(5, 1'000);
  const Store store({scratch / "store", {}});
  const std::string path = store.install(verified(bytes)).value();
  const std::string write = in_child([&] {
    become_nobody();
    return install_outcome(store, verified(synthetic_bytes(6, 1'000)));
  });
  if (::geteuid() == 0) {
    CHECK_THAT(write, Catch::StartsWith("io cannot create"));
    CHECK_THAT(write, Catch::Contains("Permission denied"));
  } else {
    CHECK(write == "ok");
  }
  ::chmod(path.c_str(), 0);
  const std::string read = in_child([&]() -> std::string {
    become_nobody();
    const auto opened = store.open_verified(record_of("k", bytes));
    if (opened) return *opened ? "served" : "missing";
    return std::string(to_string(opened.error().code())) + " " + opened.error().message();
  });
  CHECK_THAT(read, Catch::StartsWith("io cannot open the store entry '" + path + "'"));
  CHECK_THAT(read, Catch::Contains("Permission denied"));
}

TEST_CASE("a root that is a file is named and stays as it is") {
  const Scratch scratch;
  std::ofstream(scratch / "store") << "mine";
  const Store store({scratch / "store", {}});
  const std::string outcome = install_outcome(store, verified(synthetic_bytes(7, 10)));
  CHECK_THAT(outcome, Catch::StartsWith("io "));
  CHECK_THAT(outcome, Catch::Contains("Not a directory"));
  CHECK(fs::file_size(scratch / "store") == 4);
}

TEST_CASE("a temporary file goes once its writer is dead, and stays while the writer lives") {
  const Scratch scratch;
  const Store store({scratch / "store", {}});
  const std::string killed = in_child([&]() -> std::string {
    const auto staged = store.stage(verified(synthetic_bytes(8, 50'000))).value();
    ::kill(::getpid(), SIGKILL);
    return "survived";
  });
  CHECK(killed == "killed by signal 9");
  CHECK(count_entries(scratch / "store/tmp") == 1);

  auto alive = store.stage(verified(synthetic_bytes(9, 10))).value();
  CHECK(count_entries(scratch / "store/tmp") == 2);
  REQUIRE(store.install(verified(synthetic_bytes(10, 10))));
  CHECK(count_entries(scratch / "store/tmp") == 1);
  REQUIRE(store.publish({&alive, 1}));
  CHECK(count_entries(scratch / "store") == 2);
}

TEST_CASE("a sealed temporary file of a dead writer goes too") {
  const Scratch scratch;
  fs::create_directories(scratch / "store/tmp");
  std::ofstream(scratch / "store/tmp/1-aa.part") << "x";
  fs::permissions(scratch / "store/tmp/1-aa.part", fs::perms::owner_read);
  std::ofstream(scratch / "store/tmp/README") << "not ours";
  const Store store({scratch / "store", {}});
  CHECK(store.sweep() == 1);
  CHECK(fs::exists(scratch / "store/tmp/README"));
}
