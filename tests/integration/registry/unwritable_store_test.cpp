#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/log.h"
#include "registry/fetch.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/made_release.h"

namespace fs = std::filesystem;
using cubist::FetchOptions;
using cubist::Source;
using cubist::Store;
using cubist::test::enter_mount_namespace;
using cubist::test::impatient_options;
using cubist::test::in_child;
using cubist::test::MadeRelease;

namespace {

constexpr const char* kNoMounts = "no mounts";

/// Runs work with a small file system, or a read-only one, where the store would be.
std::string with_mount(const MadeRelease& release, unsigned long flags, const char* data,
                       const std::function<std::string()>& work) {
  fs::create_directories(release.store_root());
  return in_child([&]() -> std::string {
    if (!enter_mount_namespace()) return kNoMounts;
    if (::mount("none", release.store_root().c_str(), "tmpfs", flags, data) != 0) return kNoMounts;
    return work();
  });
}

bool skipped(const std::string& outcome) {
  if (outcome != kNoMounts) return false;
  WARN("mounts are not permitted here: not tested");
  return true;
}

/// "<kernels whose bytes came> kernels, <warnings> warnings"
std::string open_all(const MadeRelease& release, const FetchOptions& options) {
  int warnings = 0;
  cubist::set_log_level(cubist::LogLevel::kWarning);
  cubist::set_log_sink([&](cubist::LogLevel, std::string_view) { ++warnings; });
  std::vector<cubist::FetchItem> items = release.items();
  const auto report = fetch(release.store(), items, options);
  cubist::set_log_sink({});
  if (!report) {
    return std::string(to_string(report.error().code())) + " " + report.error().message();
  }
  std::size_t right = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto& cubin = report->files[i].cubin;
    const auto& bytes = release.bytes(i);
    right += cubin &&
             std::equal(bytes.begin(), bytes.end(), cubin->bytes().begin(), cubin->bytes().end());
  }
  return std::to_string(right) + " kernels, " + std::to_string(warnings) + " warnings";
}

FetchOptions local_options(MadeRelease& release) {
  release.set_sources({{Source::Kind::kFolder, release.tree(), MadeRelease::kPrefix}});
  return impatient_options();
}

}  // namespace

TEST_CASE("where the store cannot be written, kernels are served from memory with one warning") {
  MadeRelease release(4, 300'000);
  FetchOptions options = local_options(release);
  options.memory_if_unwritable = true;
  std::string outcome;
  SECTION("a read-only file system") {
    outcome = with_mount(release, MS_RDONLY, "", [&] { return open_all(release, options); });
  }
  SECTION("a full disk") {
    outcome = with_mount(release, 0, "size=64k", [&] { return open_all(release, options); });
  }
  if (skipped(outcome)) return;
  CHECK(outcome == "4 kernels, 1 warnings");
}

TEST_CASE("where that is not asked for, a store that cannot be written is a named error") {
  MadeRelease release(1, 300'000);
  const FetchOptions options = local_options(release);
  const std::string outcome =
      with_mount(release, MS_RDONLY, "", [&] { return open_all(release, options); });
  if (skipped(outcome)) return;
  CHECK_THAT(outcome, Catch::StartsWith("io cannot create") &&
                          Catch::Contains("Read-only file system") &&
                          Catch::Contains("CUBIST_STORE"));
}

TEST_CASE(
    "four processes and a disk too small: named as such, nothing half, nothing valid evicted") {
  MadeRelease release(2, 100'000);
  const MadeRelease large(1, 2 << 20);
  const FetchOptions options = local_options(release);
  FetchOptions from_large = options;
  from_large.sources = {{Source::Kind::kFolder, large.tree(), MadeRelease::kPrefix}};
  const std::string outcome = with_mount(release, 0, "size=1m", [&]() -> std::string {
    if (!fetch(release.store(), release.items(), options)) return "the small ones failed";
    std::vector<pid_t> processes;
    for (int i = 0; i < 4; ++i) {
      const pid_t pid = ::fork();
      if (pid < 0) return "fork failed";
      if (pid == 0) {
        const auto report = fetch(release.store(), large.items(), from_large);
        const bool named = !report && report.error().code() == cubist::StatusCode::kIo &&
                           report.error().message().find("bytes are needed") != std::string::npos;
        ::_exit(named ? 0 : 1);
      }
      processes.push_back(pid);
    }
    int wrong = 0;
    for (const pid_t pid : processes) {
      int state = 0;
      ::waitpid(pid, &state, 0);
      wrong += state == 0 ? 0 : 1;
    }
    const bool kept = release.in_store(0) && release.in_store(1);
    return std::to_string(wrong) + " wrong, " + std::to_string(release.count_store_files("tmp")) +
           " left, " + (kept ? "kept" : "evicted");
  });
  if (skipped(outcome)) return;
  CHECK(outcome == "0 wrong, 0 left, kept");
}
