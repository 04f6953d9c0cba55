#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "registry/fetch.h"
#include "registry/source.h"
#include "support/catch.h"
#include "support/made_release.h"
#include "support/processes.h"
#include "support/server.h"

namespace fs = std::filesystem;
using cubist::FetchedFile;
using cubist::FetchOptions;
using cubist::Source;
using cubist::test::finish_process;
using cubist::test::impatient_options;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;
using cubist::test::start_process;
using std::chrono::milliseconds;

namespace {

FetchOptions patient_options(const std::string& url) {
  FetchOptions options = impatient_options();
  auto profile = std::make_shared<cubist::HttpProfile>(*options.profile);
  profile->stall_timeout = milliseconds(20'000);
  options.profile = profile;
  Source source{Source::Kind::kHttp, url, MadeRelease::kPrefix};
  options.sources = {source};
  return options;
}

int fetch_all(const MadeRelease& release, const FetchOptions& options) {
  const auto report = fetch(release.store(), release.items(), options);
  if (!report) return 1;
  return report->status() ? 0 : 2;
}

/// GETs in the log, and those whose whole body was sent.
std::size_t count_gets(const MischiefServer& server) { return server.count_requests(); }

}  // namespace

TEST_CASE("however many processes want a missing entry, it is fetched once") {
  MadeRelease release(12, 30'000);
  const MischiefServer server(release.tree());
  // Each body takes a while, so that all processes want it while the first one has it.
  const FetchOptions options = patient_options(server.url("pace"));
  std::vector<pid_t> processes;
  for (int i = 0; i < 8; ++i) {
    processes.push_back(start_process([&] { return fetch_all(release, options); }));
  }
  for (const pid_t pid : processes) CHECK(finish_process(pid) == 0);
  CHECK(count_gets(server) == release.kernels().size());
  CHECK(release.count_store_files() == release.kernels().size());
  for (std::size_t i = 0; i < release.kernels().size(); ++i) CHECK(release.in_store(i));
}

TEST_CASE("a killed winner is succeeded by one of those who waited") {
  MadeRelease release(1, 50'000);
  const MischiefServer server(release.tree());
  const FetchOptions slow = patient_options(server.url("stall"));
  const pid_t winner = start_process([&] { return fetch_all(release, slow); });
  std::this_thread::sleep_for(milliseconds(500));
  const FetchOptions good = patient_options(server.url("ok"));
  std::vector<pid_t> waiters;
  for (int i = 0; i < 3; ++i) {
    waiters.push_back(start_process([&] { return fetch_all(release, good); }));
  }
  std::this_thread::sleep_for(milliseconds(700));
  CHECK_FALSE(release.in_store(0));
  ::kill(winner, SIGKILL);
  CHECK(finish_process(winner) == 128 + SIGKILL);
  for (const pid_t pid : waiters) CHECK(finish_process(pid) == 0);
  CHECK(release.in_store(0));
  CHECK(count_gets(server) == 2);
}

TEST_CASE("runs killed at random moments never leave a wrong entry, and a last run completes all") {
  MadeRelease release(60, 20'000);
  const MischiefServer server(release.tree());
  const FetchOptions options = patient_options(server.url("ok"));
  std::mt19937 random(11);
  int killed = 0;
  for (int round = 0; round < 25; ++round) {
    const pid_t one = start_process([&] { return fetch_all(release, options); });
    const pid_t two = start_process([&] { return fetch_all(release, options); });
    std::this_thread::sleep_for(milliseconds(random() % 200));
    ::kill(one, SIGKILL);
    killed += finish_process(one) != 0 ? 1 : 0;
    ::kill(two, SIGKILL);
    killed += finish_process(two) != 0 ? 1 : 0;
    for (const auto& record : release.kernels()) {
      REQUIRE(release.store().open_verified(record));
    }
    if (round % 5 == 4) fs::remove_all(release.store_root() + "/sha256");
  }
  CHECK(killed > 10);
  CHECK(fetch_all(release, options) == 0);
  CHECK(release.count_store_files() == release.kernels().size());
  CHECK(release.count_store_files("tmp") == 0);
}
