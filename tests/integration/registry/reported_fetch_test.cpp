// What users of other kernel packs reported of downloads and caches, with the behaviour that would
// have been right. docs/results/store-reliability.md lists the reports.
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "base/log.h"
#include "registry/digest_lock.h"
#include "registry/fetch.h"
#include "registry/source.h"
#include "registry/staged_file.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/environment.h"
#include "support/processes.h"
#include "support/release_cli.h"
#include "support/server.h"

namespace fs = std::filesystem;
using Catch::Contains;
using cubist::FetchedFile;
using cubist::FetchOptions;
using cubist::Source;
using cubist::Store;
using cubist::test::Environment;
using cubist::test::finish_process;
using cubist::test::impatient_options;
using cubist::test::in_child;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;
using cubist::test::read_bytes;
using cubist::test::ReleaseCli;
using cubist::test::start_process;
using cubist::test::ToolRun;
using cubist::test::write_bytes;
using std::chrono::milliseconds;

namespace {

Source tree(const std::string& url) { return {Source::Kind::kHttp, url, MadeRelease::kPrefix}; }

ino_t inode(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

/// Memory that a process and its children share; children stop by themselves after a while, so that
/// a test that fails leaves none behind.
struct SharedCounters {
  std::atomic<int> inside{0};
  std::atomic<int> together{0};
  std::atomic<bool> stop{false};
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);

  bool over() const { return stop || std::chrono::steady_clock::now() > deadline; }

  static SharedCounters* make() {
    void* memory = ::mmap(nullptr, sizeof(SharedCounters), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) SharedCounters;
  }
};

/// What `strace -f` saw of the network while the tool ran; empty where strace is not permitted.
std::string network_calls(const ReleaseCli& cli, const std::string& arguments, int& exit_code) {
  const std::string trace = cli.release.scratch() / "trace";
  const std::string command = "strace -f -qq -o '" + trace + "' -e trace=socket,connect " +
                              CUBIST_TOOL + " " + arguments + " -m '" + cli.manifest +
                              "' --store '" + cli.release.store_root() + "' >/dev/null 2>&1";
  exit_code = WEXITSTATUS(std::system(command.c_str()));
  return cubist::test::file_text(trace);
}

}  // namespace

TEST_CASE("eight processes want one file of a slow server: one copy, readers see absent or whole") {
  MadeRelease release(1, 200'000);
  const MischiefServer server(release.tree());
  FetchOptions options = impatient_options();
  auto profile = std::make_shared<cubist::HttpProfile>(*options.profile);
  profile->stall_timeout = milliseconds(20'000);
  options.profile = profile;
  options.sources = {tree(server.url("pace"))};  // the body takes a second
  SharedCounters* shared = SharedCounters::make();
  const pid_t reader = start_process([&] {
    ino_t seen = 0;
    int whole = 0;
    const std::string path = cubist::entry_path(release.store_root(), release.kernels()[0].sha256);
    while (!shared->over()) {
      const auto opened = release.store().open_verified(release.kernels()[0]);
      if (!opened) return 1;
      if (*opened) {
        ++whole;
        const ino_t now = inode(path);
        if (seen != 0 && now != seen) return 2;
        seen = now;
      }
      std::this_thread::sleep_for(milliseconds(2));
    }
    return whole > 0 ? 0 : 3;
  });
  std::vector<pid_t> writers;
  for (int i = 0; i < 8; ++i) {
    writers.push_back(start_process([&] {
      const auto report = fetch(release.store(), release.items(), options);
      return report && report->status() ? 0 : 1;
    }));
  }
  for (const pid_t pid : writers) CHECK(finish_process(pid) == 0);
  std::this_thread::sleep_for(milliseconds(50));
  shared->stop = true;
  CHECK(finish_process(reader) == 0);
  CHECK(server.count_requests() == 1);
  CHECK(release.count_store_files() == 1);
  CHECK(release.count_store_files("tmp") == 0);
}

TEST_CASE("repair gives a new file, so a process that mapped the broken one keeps what it had") {
  const ReleaseCli cli(2);
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  cli.overwrite(0, std::string(50'000, 'x'));
  const auto file = cubist::open_regular_file(cli.entry(0));
  REQUIRE(file);
  const ino_t before = inode(cli.entry(0));
  const auto* mapped =
      static_cast<const char*>(::mmap(nullptr, 50'000, PROT_READ, MAP_SHARED, file->get(), 0));
  REQUIRE(mapped != MAP_FAILED);
  // What is loaded was hashed in the loader's own memory, whatever the path means by then.
  const auto refused = cli.release.store().open_verified(cli.release.kernels()[0]);
  REQUIRE_FALSE(refused);
  CHECK(cli.run("verify", {"--repair"}).exit_code == 0);
  CHECK(inode(cli.entry(0)) != before);
  CHECK(std::string_view(mapped, 50'000) == std::string(50'000, 'x'));
  ::munmap(const_cast<char*>(mapped), 50'000);
  const auto held = cli.release.store().open_verified(cli.release.kernels()[0]);
  REQUIRE(held);
  CHECK(held->has_value());
}

TEST_CASE("processes that lock and unlock in a loop are never inside at once, on one lock file") {
  const cubist::test::Scratch scratch;
  const cubist::Sha256Digest digest = cubist::sha256({});
  SharedCounters* shared = SharedCounters::make();
  std::vector<pid_t> processes;
  for (int i = 0; i < 3; ++i) {
    processes.push_back(start_process([&] {
      for (int taken = 0; taken < 300 && !shared->over();) {
        cubist::DigestLocks locks(scratch.path());
        if (locks.try_take(digest) != cubist::DigestLocks::Outcome::kTaken) {
          ::sched_yield();
          continue;
        }
        if (++shared->inside != 1) ++shared->together;
        ::sched_yield();
        --shared->inside;
        locks.release(digest);
        ++taken;
      }
      return 0;
    }));
  }
  while (inode(scratch / "lock") == 0 && !shared->over())
    std::this_thread::sleep_for(milliseconds(1));
  const ino_t first = inode(scratch / "lock");
  for (const pid_t pid : processes) CHECK(finish_process(pid) == 0);
  CHECK(shared->together == 0);
  CHECK(inode(scratch / "lock") == first);
}

TEST_CASE("a sweeper never takes the file of a living writer, from its first moment on") {
  const cubist::test::Scratch scratch;
  fs::create_directories(scratch / "tmp");
  SharedCounters* shared = SharedCounters::make();
  const pid_t sweeper = start_process([&] {
    while (!shared->over()) cubist::sweep_stale_files(scratch / "tmp");
    return 0;
  });
  int lost = 0;
  for (int i = 0; i < 2'000; ++i) {
    auto file = cubist::StagedFile::create(scratch / "tmp");
    REQUIRE(file);
    lost += inode(file->path()) == 0 ? 1 : 0;
  }
  shared->stop = true;
  CHECK(finish_process(sweeper) == 0);
  CHECK(lost == 0);
}

TEST_CASE("a refusal is told in full and not repeated, overload and faults are tried again") {
  ReleaseCli cli(1);
  const MischiefServer server(cli.release.tree());
  struct Row {
    const char* behaviour;
    std::size_t requests;
    int exit_code;
  };
  const auto row = GENERATE(values<Row>({{"403", 1, 5},
                                         {"404", 1, 5},
                                         {"500", 2, 5},
                                         {"500-then-ok", 2, 0},
                                         {"429-then-ok", 2, 0},
                                         {"408-then-ok", 2, 0}}));
  cli.set_source(tree(server.url(row.behaviour)));
  const ToolRun run = cli.fetch({"--all"});
  INFO(row.behaviour << ": " << run.err);
  CHECK(run.exit_code == row.exit_code);
  CHECK(server.count_requests() == row.requests);
  if (row.exit_code == 0) return;
  CHECK_THAT(run.err, Contains(std::string(row.behaviour).substr(0, 3) + " ") &&
                          Contains(server.url(row.behaviour) + "/" + cli.release.path(0)) &&
                          Contains("kernel_00000") && Contains(cli.release.store_root()) &&
                          Contains("without a network: install a bundle") &&
                          Contains("copy that machine's store"));
}

TEST_CASE("what was fetched ahead needs no network: no socket is made, and status says complete") {
  ReleaseCli cli(5, 20'000);
  {
    const MischiefServer server(cli.release.tree());
    cli.set_source(tree(server.url("ok")));
    REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  }
  int exit_code = 0;
  const std::string seen = network_calls(cli, "fetch --kernel nobody", exit_code);
  if (exit_code == 127) WARN("strace is not there: calls are not looked at");
  for (const char* command : {"status --offline", "fetch --all", "fetch --all --offline",
                              "fetch --all --rehash", "verify"}) {
    const std::string calls = network_calls(cli, command, exit_code);
    INFO(command << "\n" << calls);
    CHECK(exit_code == 0);
    CHECK(calls.find("connect(") == std::string::npos);
    CHECK(calls.find("socket(AF_INET") == std::string::npos);
  }
  const std::string loaded = in_child([&]() -> std::string {
    // No route anywhere: an interface list with nothing but a loopback that is down.
    if (::unshare(::geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER) != 0) return "5";
    int right = 0;
    for (const auto& item : cli.release.items()) {
      right += open_or_fetch(cli.release.store(), item, {}) ? 1 : 0;
    }
    return std::to_string(right);
  });
  CHECK(loaded == "5");
  fs::remove(cli.entry(3));
  const ToolRun status = cli.run("status", {"--offline"});
  CHECK(status.exit_code == 7);
  CHECK_THAT(status.out, Contains("missing: kernel_00003"));
}

TEST_CASE("a store that was moved, or lies below another, is found by hash: no request") {
  ReleaseCli cli(4, 10'000);
  const MischiefServer server(cli.release.tree());
  cli.set_source(tree(server.url("ok")));
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  const std::string moved = cli.release.scratch() / "some/other/root";
  fs::create_directories(fs::path(moved).parent_path());
  fs::rename(cli.release.store_root(), moved);
  const std::size_t before = server.count_requests();
  SECTION("as the store itself") {
    const ToolRun run = cli.fetch({"--all", "--store", moved});
    CHECK_THAT(run.out, Contains("0 fetched, 4 present, 0 failed; 0 requests"));
  }
  SECTION("as a layer below an empty store") {
    const Environment environment(Environment::Values{{"CUBIST_STORE_BASE", moved}});
    const ToolRun run = cli.fetch({"--all"});
    CHECK_THAT(run.out, Contains("0 fetched, 4 present, 0 failed; 0 requests"));
    CHECK_FALSE(fs::exists(cli.release.store_root()));
  }
  SECTION("as a source, with other names and folders than the manifest's") {
    const ToolRun run = cli.fetch({"--all", "--source", moved});
    CHECK_THAT(run.out, Contains("4 fetched, 0 present, 0 failed; 0 requests"));
  }
  CHECK(server.count_requests() == before);
}

TEST_CASE("a full store decides, not a probe: with the server down everything is served") {
  ReleaseCli cli(3);
  std::string dead = "http://127.0.0.1:" + std::to_string(cubist::test::free_port());
  cli.set_source({Source::Kind::kFolder, cli.release.tree(), MadeRelease::kPrefix});
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  cli.set_source(tree(dead));
  CHECK_THAT(cli.fetch({"--all", "--json"}).out, Contains("\"requests\": 0"));
  for (const auto& item : cli.release.items()) {
    CHECK(open_or_fetch(cli.release.store(), item, impatient_options()));
  }
  fs::remove(cli.entry(1));
  CHECK(cli.fetch({"--all"}).exit_code == 5);
}

TEST_CASE("settings that are misspelt or were renamed are never passed over in silence") {
  const ReleaseCli cli(1);
  CHECK(cli.fetch({"--all", "--archs", "sm_90a"}).exit_code == 2);
  {
    const Environment renamed(Environment::Values{{"CUBIST_STORE_DIR", "/somewhere"}});
    const ToolRun run = cli.fetch({"--all"});
    CHECK(run.exit_code == 0);
    CHECK(count(run.err, "CUBIST_STORE_DIR means nothing") == 1);
    CHECK_THAT(run.err, Contains("CUBIST_STORE_BASE"));
  }
  std::string text = cubist::test::file_text(cli.manifest);
  text.insert(text.find('{') + 1, "\"arch_list\":[],");
  std::ofstream(cli.manifest) << text;
  const ToolRun run = cli.fetch({"--all"});
  CHECK(run.exit_code == 8);
  CHECK_THAT(run.err, Contains("unknown key 'arch_list'"));
}

TEST_CASE("a manifest without a digest is refused: an empty one is no wildcard") {
  const ReleaseCli cli(1);
  const std::string good = cubist::test::file_text(cli.manifest);
  const std::string hex = cli.release.kernels()[0].sha256.hex();
  const std::string field = "\"sha256\":\"" + hex + "\"";
  REQUIRE(good.find(field) != std::string::npos);
  for (const std::string& other :
       {std::string("\"sha256\":\"\""), std::string("\"sha256\":null"),
        std::string("\"sha256\":\"" + hex.substr(1) + "\""), std::string("\"note\":\"\"")}) {
    std::string text = good;
    text.replace(text.find(field), field.size(), other);
    std::ofstream(cli.manifest) << text;
    const ToolRun run = cli.fetch({"--all"});
    INFO(other << ": " << run.err);
    CHECK(run.exit_code == 8);
    CHECK_THAT(run.err, Contains("sha256"));
    CHECK_FALSE(fs::exists(cli.release.store_root()));
  }
}

TEST_CASE("what came before a failure stays, and the next run asks for the rest alone") {
  ReleaseCli cli(6, 20'000);
  const MischiefServer server(cli.release.tree());
  cli.set_source(tree(server.url("ok")));
  const std::string gone = cli.release.tree() + "/" + cli.release.path(4);
  fs::rename(gone, gone + ".away");
  const ToolRun part = cli.fetch({"--all"});
  CHECK(part.exit_code == 5);
  CHECK_THAT(part.out, Contains("5 fetched, 0 present, 1 failed"));
  const std::vector<ino_t> before = cli.inodes();
  fs::rename(gone + ".away", gone);
  const std::size_t requests = server.count_requests();
  CHECK_THAT(cli.fetch({"--all"}).out, Contains("1 fetched, 5 present, 0 failed"));
  CHECK(server.count_requests() == requests + 1);
  CHECK_THAT(cli.fetch({"--all"}).out, Contains("0 fetched, 6 present, 0 failed; 0 requests"));
  CHECK(server.count_requests() == requests + 1);
  const std::vector<ino_t> after = cli.inodes();
  for (std::size_t i = 0; i < 6; ++i) CHECK((after[i] == before[i]) == (i != 4));
}

TEST_CASE("of two packs, the older first, each file's digest decides; the stale one is reported") {
  ReleaseCli cli(4, 10'000);
  const std::string old = cli.release.scratch() / "old";
  fs::copy(cli.release.tree(), old, fs::copy_options::recursive);
  for (const std::size_t changed : {1U, 2U}) {
    auto bytes = read_bytes(old + "/" + cli.release.path(changed));
    bytes[500] ^= 1;
    write_bytes(old + "/" + cli.release.path(changed), bytes);
  }
  SECTION("as sources") {
    cli.release.set_sources({{Source::Kind::kFolder, old, MadeRelease::kPrefix},
                             {Source::Kind::kFolder, cli.release.tree(), MadeRelease::kPrefix}});
    cli.manifest = cli.release.write_manifest_file();
    const ToolRun run = cli.fetch({"--all"});
    CHECK(run.exit_code == 0);
    CHECK(count(run.err, "does not have what the manifest names") == 1);
    CHECK_THAT(run.err, Contains(old) && Contains("sha256 mismatch"));
  }
  SECTION("as layers of the store") {
    REQUIRE(cli.fetch({"--all"}).exit_code == 0);
    const std::string newer = cli.release.scratch() / "newer";
    fs::copy(cli.release.store_root(), newer, fs::copy_options::recursive);
    cli.overwrite(1, "of another release");
    const Environment environment(Environment::Values{{"CUBIST_STORE_BASE", newer}});
    const auto store = Store::open(cli.release.store_root());
    REQUIRE(store);
    const auto opened = store->open_verified(cli.release.kernels()[1]);
    REQUIRE(opened);
    CHECK(opened->has_value());
    return;
  }
  for (std::size_t i = 0; i < 4; ++i) CHECK(cli.release.in_store(i));
}

TEST_CASE("one broken file of a hundred is fetched again and ninety-nine are not touched") {
  ReleaseCli cli(100, 2'000);
  const MischiefServer server(cli.release.tree());
  cli.set_source(tree(server.url("ok")));
  REQUIRE(cli.fetch({"--all"}).exit_code == 0);
  const std::size_t requests = server.count_requests();
  const std::vector<ino_t> before = cli.inodes();
  cli.overwrite(37, "broken");
  const ToolRun repaired = cli.run("verify", {"--repair"});
  CHECK(repaired.exit_code == 0);
  CHECK_THAT(repaired.out, Contains("1 fetched again"));
  CHECK(server.count_requests() == requests + 1);
  const std::vector<ino_t> after = cli.inodes();
  for (std::size_t i = 0; i < 100; ++i) CHECK((after[i] == before[i]) == (i != 37));
  CHECK(cli.release.in_store(37));
}

TEST_CASE("a server that stalls half way is asked for the rest, and the whole is hashed") {
  ReleaseCli cli(1, 200'000);
  const MischiefServer server(cli.release.tree());
  cli.set_source(tree(server.url("stall-once")));
  const ToolRun run = cli.fetch({"--all"});
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(cli.release.in_store(0));
  const std::string log = server.log();
  CHECK(count(log, "\"range\": \"bytes=100000-\"") == 1);
  CHECK(count(log, "\"if_range\": \"\\\"v1\\\"\"") == 1);
  CHECK(server.count_requests() == 2);
}
