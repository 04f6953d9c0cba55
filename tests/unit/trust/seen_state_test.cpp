#include "trust/seen_state.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/minisign.h"
#include "support/processes.h"
#include "support/scratch.h"

namespace cubist::trust {
namespace {

using Catch::Matchers::Contains;
using test::Scratch;
namespace fs = std::filesystem;

Seen seen_of(const std::string& what, std::int64_t serial) {
  Seen seen;
  seen.serials[what] = serial;
  return seen;
}

std::string state_file(const std::string& folder) {
  return folder + "/seen-" + std::to_string(::geteuid()) + ".json";
}

TEST_CASE("what was seen is written and read again") {
  Seen seen = seen_of("manifest m", 7);
  CHECK(parse_seen(write_seen(Seen()), "s.json")->serials.empty());
  seen.serials["revocations "] = 1;
  seen.statements = {sha256({}), *Sha256Digest::parse(std::string(64, 'a'))};
  seen.retired.insert(*parse_public_key(test::Signer().public_line(), ""));
  seen.retired.insert(*parse_public_key(test::Signer().public_line(), ""));
  const auto again = parse_seen(write_seen(seen), "s.json");
  REQUIRE(again);
  CHECK(again->serials == seen.serials);
  CHECK(again->retired == seen.retired);
  CHECK(again->statements == seen.statements);
}

TEST_CASE("only what is higher or new is taken in") {
  Seen seen = seen_of("manifest m", 7);
  CHECK_FALSE(seen.merge(seen_of("manifest m", 6)));
  CHECK_FALSE(seen.merge(seen_of("manifest m", 7)));
  CHECK(seen.merge(seen_of("manifest m", 8)));
  CHECK(seen.merge(seen_of("manifest n", 1)));
  CHECK(seen.serial_of("manifest m") == 8);
  CHECK(seen.serial_of("manifest o") == 0);
}

TEST_CASE("a hash stays beside its serial, and a state without hashes is read") {
  const std::string what = "manifest m";
  const Sha256Digest first = *Sha256Digest::parse(std::string(64, 'a'));
  const Sha256Digest second = *Sha256Digest::parse(std::string(64, 'b'));
  Seen seen = seen_of(what, 7);
  Seen told = seen_of(what, 7);
  told.hashes[what] = first;
  CHECK(seen.merge(told));
  CHECK_FALSE(seen.merge(told));
  told.hashes[what] = second;
  CHECK_FALSE(seen.merge(told));
  CHECK(seen.hash_of(what) == first);
  seen.lists[second] = "advisories";
  const auto again = parse_seen(write_seen(seen), "s.json");
  REQUIRE(again);
  CHECK(again->hashes == seen.hashes);
  CHECK(again->lists == seen.lists);
  CHECK(seen.merge(seen_of(what, 8)));
  CHECK_FALSE(seen.hash_of(what));
  const auto old = parse_seen(
      R"({"schema": "cubist.seen", "schema_version": 1, "serials": {"manifest m": 7},
          "retired_keys": [], "statements": []})",
      "s.json");
  REQUIRE(old);
  CHECK(old->serial_of(what) == 7);
  CHECK_FALSE(old->hash_of(what));
}

TEST_CASE("a state is noted with mode 0600, and nothing is written for what is known") {
  const Scratch scratch;
  const std::string folder = scratch / "store/state";
  const SeenState state(folder);
  CHECK(state.load()->serials.empty());
  CHECK_FALSE(fs::exists(scratch / "store"));
  REQUIRE(state.note(seen_of("manifest m", 7)));
  struct stat info {};
  REQUIRE(::stat(state_file(folder).c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  const ino_t before = info.st_ino;
  REQUIRE(state.note(seen_of("manifest m", 7)));
  REQUIRE(state.note(seen_of("manifest m", 5)));
  REQUIRE(::stat(state_file(folder).c_str(), &info) == 0);
  CHECK(info.st_ino == before);
  REQUIRE(state.note(seen_of("manifest n", 1)));
  CHECK(state.load()->serial_of("manifest m") == 7);
  CHECK(state.load()->serial_of("manifest n") == 1);
}

TEST_CASE("processes that note at once lose nothing") {
  const Scratch scratch;
  const std::string folder = scratch / "state";
  constexpr int kProcesses = 8;
  std::vector<pid_t> processes;
  for (int i = 0; i < kProcesses; ++i) {
    processes.push_back(test::start_process([&, i] {
      for (int serial = 1; serial <= 10; ++serial) {
        if (!SeenState(folder).note(seen_of(fmt::format("manifest {}", i), serial))) return 1;
      }
      return 0;
    }));
  }
  for (const pid_t process : processes) CHECK(test::finish_process(process) == 0);
  const auto seen = SeenState(folder).load();
  REQUIRE(seen);
  for (int i = 0; i < kProcesses; ++i) CHECK(seen->serial_of(fmt::format("manifest {}", i)) == 10);
}

TEST_CASE("a planted link, FIFO, folder or open file in place of the state is refused") {
  const Scratch scratch;
  const std::string folder = scratch / "state";
  REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
  const std::string file = state_file(folder);
  const std::string elsewhere = scratch / "elsewhere";
  REQUIRE(write_file_atomically(elsewhere, write_seen(seen_of("manifest m", 1))));
  SECTION("a link") { REQUIRE(::symlink(elsewhere.c_str(), file.c_str()) == 0); }
  SECTION("a link to nowhere") { REQUIRE(::symlink("nowhere", file.c_str()) == 0); }
  SECTION("a FIFO") { REQUIRE(::mkfifo(file.c_str(), 0600) == 0); }
  SECTION("a device") {
    if (::mknod(file.c_str(), S_IFCHR | 0600, 0x103) != 0) return;  // needs root
  }
  SECTION("a folder") { REQUIRE(::mkdir(file.c_str(), 0700) == 0); }
  SECTION("a file that everybody can write") {
    REQUIRE(write_file_atomically(file, write_seen(Seen())));
    REQUIRE(::chmod(file.c_str(), 0666) == 0);
  }
  const auto refused = SeenState(folder).load();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  CHECK_THAT(refused.error().message(), Contains(file) && Contains("remove it"));
  CHECK_FALSE(SeenState(folder).note(seen_of("manifest m", 9)));
  CHECK_THAT(*read_text_file(elsewhere, 1000), Contains("\"manifest m\": 1"));
}

TEST_CASE("a link in place of the folder or the lock is not followed") {
  const Scratch scratch;
  const std::string folder = scratch / "state";
  const std::string elsewhere = scratch / "elsewhere";
  REQUIRE(::mkdir(elsewhere.c_str(), 0700) == 0);
  SECTION("the folder") {
    REQUIRE(::symlink(elsewhere.c_str(), folder.c_str()) == 0);
    const auto refused = SeenState(folder).load();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kUntrusted);
  }
  SECTION("the lock") {
    REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
    REQUIRE(::symlink((elsewhere + "/lock").c_str(), (state_file(folder) + ".lock").c_str()) == 0);
  }
  const Status refused = SeenState(folder).note(seen_of("manifest m", 9));
  REQUIRE_FALSE(refused);
  CHECK(fs::is_empty(elsewhere));
}

TEST_CASE("a state that is broken is an error, not an empty one") {
  const Scratch scratch;
  const std::string folder = scratch / "state";
  REQUIRE(::mkdir(folder.c_str(), 0700) == 0);
  for (const char* bad : {"", "{", "[]", "{}", R"({"schema": "cubist.seen", "schema_version": 1})",
                          R"({"schema": "cubist.seen", "schema_version": 2, "serials": {}})",
                          R"({"schema": "cubist.seen", "schema_version": 1,
                              "serials": {"manifest m": 0}, "retired_keys": []})",
                          R"({"schema": "cubist.seen", "schema_version": 1,
                              "serials": {}, "retired_keys": ["RW"], "statements": []})",
                          R"({"schema": "cubist.seen", "schema_version": 1,
                              "serials": {}, "retired_keys": [], "statements": ["aa"]})",
                          R"({"schema": "cubist.seen", "schema_version": 1,
                              "serials": {}, "retired_keys": []})"}) {
    CAPTURE(bad);
    REQUIRE(write_file_atomically(state_file(folder), bad));
    const auto refused = SeenState(folder).load();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kIntegrity);
    CHECK_THAT(refused.error().message(), Contains("remove it to begin anew"));
  }
  fs::resize_file(state_file(folder), 5 << 20);
  CHECK(SeenState(folder).load().error().code() == StatusCode::kIntegrity);
}

TEST_CASE("a folder that cannot be written is an error of note alone") {
  const Scratch scratch;
  const std::string folder = scratch / "file/state";
  REQUIRE(write_file_atomically(scratch / "file", std::string_view("x")));
  const Status noted = SeenState(folder).note(seen_of("manifest m", 1));
  REQUIRE_FALSE(noted);
  CHECK(noted.error().code() == StatusCode::kIo);
  CHECK(SeenState("").note(seen_of("manifest m", 1)));
  CHECK(SeenState("").load()->serials.empty());
}

TEST_CASE("what a killed writer left does not stop the next one") {
  const Scratch scratch;
  const std::string folder = scratch / "state";
  REQUIRE(SeenState(folder).note(seen_of("manifest m", 1)));
  const std::string answer = test::in_child([&]() -> std::string {
    const std::string left = fmt::format("{}.{}", state_file(folder), ::getpid());
    if (!write_file_atomically(left, std::string_view("half"))) return "no file";
    const Status noted = SeenState(folder).note(seen_of("manifest m", 2));
    return noted ? "noted" : noted.error().message();
  });
  CHECK(answer == "noted");
  CHECK(SeenState(folder).load()->serial_of("manifest m") == 2);
}

}  // namespace
}  // namespace cubist::trust
