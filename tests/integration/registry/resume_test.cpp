// Stopped runs leave what they have, and the next one asks for the rest alone.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "registry/partial_file.h"
#include "support/catch.h"
#include "support/processes.h"
#include "support/release_cli.h"
#include "support/server.h"

namespace fs = std::filesystem;
using Catch::Contains;
using cubist::Source;
using cubist::test::file_text;
using cubist::test::MadeRelease;
using cubist::test::MischiefServer;
using cubist::test::ReleaseCli;
using cubist::test::ToolRun;

namespace {

constexpr std::size_t kKernelBytes = 400'000;

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

/// Starts a fetch, sends it a signal once the server has begun to stall, and returns its exit code.
int interrupted_fetch(const ReleaseCli& cli, const MischiefServer& server, int number) {
  const std::string log = cli.release.scratch() / "stopped";
  const pid_t tool = cubist::test::start_process([&] {
    const std::string command = std::string("exec ") + CUBIST_TOOL + " fetch -m " + cli.manifest +
                                " --store " + cli.release.store_root() + " --all >" + log + " 2>&1";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    return 127;
  });
  while (server.log().find("\"sent\": 2") == std::string::npos) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(tool, number);
  const int exit_code = cubist::test::finish_process(tool);
  CHECK_THAT(file_text(log), Contains("run the same command again to go on"));
  return exit_code;
}

}  // namespace

TEST_CASE(
    "after Ctrl-C, SIGTERM or a hang-up the next run asks for the rest, with the validator, and "
    "leaves no trace") {
  ReleaseCli cli(1, kKernelBytes);
  const MischiefServer server(cli.release.tree());
  cli.set_source({Source::Kind::kHttp, server.url("stall-once"), MadeRelease::kPrefix});
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP);
  CHECK(interrupted_fetch(cli, server, number) == 128 + number);
  CHECK(cli.release.count_store_files() == 0);
  CHECK(cli.release.count_store_files("tmp") == 1);
  const ToolRun next = cli.fetch({"--all"});
  INFO(next.err);
  CHECK(next.exit_code == 0);
  CHECK(cli.release.in_store(0));
  CHECK(cli.release.count_store_files("tmp") == 0);
  const std::string log = server.log();
  CHECK(count(log, "\"range\": \"bytes=200000-\"") == 1);
  CHECK(count(log, "\"if_range\": \"\\\"v1\\\"\"") == 1);
  CHECK(count(log, "\"path\"") == 2);
}

TEST_CASE("a fetch under nohup outlives the hang-up") {
  ReleaseCli cli(1, kKernelBytes);
  const MischiefServer server(cli.release.tree());
  cli.set_source({Source::Kind::kHttp, server.url("pace"), MadeRelease::kPrefix});
  const pid_t tool = cubist::test::start_process([&] {
    ::signal(SIGHUP, SIG_IGN);
    ::execl(CUBIST_TOOL, "cubist", "fetch", "-q", "-m", cli.manifest.c_str(), "--store",
            cli.release.store_root().c_str(), "--all", nullptr);
    return 127;
  });
  while (server.count_requests() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  ::kill(tool, SIGHUP);
  CHECK(cubist::test::finish_process(tool) == 0);
  CHECK(cli.release.in_store(0));
}

TEST_CASE("a member of a wheel goes on where it stopped too") {
  ReleaseCli cli(2, kKernelBytes);
  const MischiefServer server(cli.release.tree());
  // Stopped after a second of two and a half: the directory has come, and a part of the member.
  cli.set_source({Source::Kind::kZip, server.url("pace") + "/" + MadeRelease::kWheel + "?seconds=2",
                  MadeRelease::kPrefix});
  REQUIRE(cli.fetch({"--kernel", "kernel_00000", "--stall-timeout", "20"}).exit_code == 0);
  const std::string log = cli.release.scratch() / "stopped";
  const std::size_t before = server.count_requests();
  const pid_t tool = cubist::test::start_process([&] {
    const std::string command = std::string("exec ") + CUBIST_TOOL + " fetch -m " + cli.manifest +
                                " --store " + cli.release.store_root() +
                                " --kernel kernel_00001 >" + log + " 2>&1";
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    return 127;
  });
  while (server.count_requests() == before) {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(800));
  ::kill(tool, SIGINT);
  CHECK(cubist::test::finish_process(tool) == 130);
  REQUIRE(cli.release.count_store_files("tmp") == 1);
  const ToolRun next = cli.fetch({"--kernel", "kernel_00001", "--stall-timeout", "20"});
  INFO(next.err);
  CHECK(next.exit_code == 0);
  CHECK(cli.release.in_store(1));
  CHECK(cli.release.count_store_files("tmp") == 0);
  // The second request of the member begins after what the first one brought.
  std::vector<std::uint64_t> first;
  const std::string text = server.log();
  for (std::size_t at = 0; (at = text.find("\"bytes=", at)) != std::string::npos; at += 7) {
    first.push_back(std::strtoull(text.c_str() + at + 7, nullptr, 10));
  }
  REQUIRE(first.size() >= 2);
  CHECK(first.back() > first[first.size() - 2] + 16'384);
}

TEST_CASE("where the server has another version by then, nothing is mixed") {
  ReleaseCli cli(1, kKernelBytes);
  const MischiefServer server(cli.release.tree());
  const char* behaviour = GENERATE("stall-once-then-new-etag", "stall-once-then-other");
  cli.set_source({Source::Kind::kHttp, server.url(behaviour), MadeRelease::kPrefix});
  CHECK(interrupted_fetch(cli, server, SIGINT) == 130);
  const ToolRun next = cli.fetch({"--all"});
  INFO(behaviour << ": " << next.err);
  CHECK(next.exit_code == 0);
  CHECK(cli.release.in_store(0));
  CHECK(cli.release.count_store_files("tmp") == 0);
}

TEST_CASE("what came before the last try failed is kept as well") {
  ReleaseCli cli(1, kKernelBytes);
  const MischiefServer server(cli.release.tree());
  cli.set_source({Source::Kind::kHttp, server.url("stall-once"), MadeRelease::kPrefix});
  CHECK(cli.fetch({"--all", "--tries", "1"}).exit_code == 5);
  CHECK(cli.release.count_store_files("tmp") == 1);
  CHECK(cli.fetch({"--all"}).exit_code == 0);
  CHECK_THAT(server.log(), Contains("bytes=200000-"));
  CHECK(cli.release.count_store_files("tmp") == 0);
}

TEST_CASE("a file to go on from that is damaged, of another address or too large is passed over") {
  ReleaseCli cli(1, kKernelBytes);
  const MischiefServer server(cli.release.tree());
  cli.set_source({Source::Kind::kHttp, server.url("ok"), MadeRelease::kPrefix});
  const std::string path =
      cubist::partial_path(cli.release.store_root(), cli.release.kernels()[0].sha256);
  cubist::HttpRequest request;
  request.url = cubist::parse_url(server.url("ok") + "/" + cli.release.path(0)).value();
  const std::string head = "cubist partial 1\n" + cubist::partial_key(request) + "\n\"v1\"\n";
  std::string text;
  bool used = false;
  SECTION("empty") {}
  SECTION("no bytes") { text = head; }
  SECTION("no validator") { text = head.substr(0, head.size() - 5) + "\n\nxxxx"; }
  SECTION("another address") {
    text = "cubist partial 1\n" + std::string(64, '0') + "\n\"v1\"\n" + std::string(50'000, 'x');
  }
  SECTION("larger than the file") { text = head + std::string(kKernelBytes + 5'000, 'x'); }
  SECTION("as large as the file") { text = head + std::string(kKernelBytes, 'x'); }
  SECTION("other bytes under a validator that still holds") {
    text = head + std::string(50'000, 'x');
    used = true;
  }
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  cubist::test::write_bytes(path, bytes);
  CHECK(cli.fetch({"--all"}).exit_code == 0);
  CHECK(cli.release.in_store(0));
  CHECK_FALSE(fs::exists(path));
  CHECK(server.count_requests() == (used ? 2 : 1));
}
