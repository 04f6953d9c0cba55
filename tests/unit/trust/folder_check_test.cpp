#include "trust/folder_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/log.h"
#include "support/catch.h"
#include "support/scratch.h"

namespace cubist::trust {
namespace {

using Catch::Matchers::Contains;
using test::Scratch;
namespace fs = std::filesystem;

constexpr uid_t kSomebody = 65533;

/// A store in folders of the user's own.
struct Rig {
  Scratch scratch;
  std::string way = scratch / "way";
  std::string root = scratch / "way/store";

  Rig() {
    for (const std::string& folder : {way, root, root + "/tmp"}) {
      REQUIRE(::mkdir(folder.c_str(), 0755) == 0);
    }
  }
  std::vector<std::string> problems() const { return folder_problems(root, {"tmp", "index"}); }
};

void give_mode(const std::string& folder, mode_t mode) {
  REQUIRE(::chmod(folder.c_str(), mode) == 0);
}

/// False where the user may not give folders away.
bool give_to_somebody(const std::string& folder) {
  return ::chown(folder.c_str(), kSomebody, kSomebody) == 0;
}

TEST_CASE("folders of the user and of root are fine, a group's too, and what is not there") {
  const Rig rig;
  CHECK(rig.problems().empty());
  give_mode(rig.root, 02775);
  CHECK(rig.problems().empty());
  CHECK(folder_problems("/none/at/all", {"tmp"}).empty());
  CHECK(folder_problems("/", {}).empty());
  CHECK(folder_problems(rig.scratch / "not/yet", {"tmp"}).empty());
}

TEST_CASE("a folder that everybody can write is named, with its mode") {
  const Rig rig;
  SECTION("the store") {
    give_mode(rig.root, 0777);
    CHECK_THAT(rig.problems().at(0), Contains("way/store") && Contains("0777"));
  }
  SECTION("the store, sticky") {
    give_mode(rig.root, 01777);
    CHECK(rig.problems().size() == 1);
  }
  SECTION("a folder in it") {
    give_mode(rig.root + "/tmp", 0777);
    CHECK_THAT(rig.problems().at(0), Contains("store/tmp"));
  }
  SECTION("a folder on the way") {
    give_mode(rig.way, 0777);
    CHECK_THAT(rig.problems().at(0), Contains("way' can be written by everybody"));
    give_mode(rig.way, 01777);
    CHECK(rig.problems().empty());
  }
}

TEST_CASE("a folder of another user is named, with its owner") {
  const Rig rig;
  for (const std::string& folder : {rig.way, rig.root, rig.root + "/tmp"}) {
    if (!give_to_somebody(folder)) {
      WARN("folders cannot be given away here: owners not tested");
      return;
    }
    REQUIRE(rig.problems().size() == 1);
    CHECK_THAT(rig.problems()[0], Contains(folder) && Contains("belongs to user 65533"));
    REQUIRE(::chown(folder.c_str(), ::geteuid(), ::getegid()) == 0);
  }
  CHECK(rig.problems().empty());
}

TEST_CASE("both ways count where a link leads to the store") {
  const Rig rig;
  const std::string link = rig.scratch / "open/link";
  REQUIRE(::mkdir((rig.scratch / "open").c_str(), 0755) == 0);
  REQUIRE(::symlink(rig.root.c_str(), link.c_str()) == 0);
  CHECK(folder_problems(link, {}).empty());
  give_mode(rig.scratch / "open", 0777);
  CHECK_THAT(folder_problems(link, {}).at(0), Contains("/open' can be written"));
  give_mode(rig.scratch / "open", 0755);
  give_mode(rig.way, 0777);
  CHECK_THAT(folder_problems(link, {}).at(0), Contains("/way' can be written"));
}

TEST_CASE("the policy decides: nothing, one warning, or an error") {
  const Rig rig;
  give_mode(rig.root, 0777);
  int warnings = 0;
  set_log_sink([&](LogLevel, std::string_view text) {
    ++warnings;
    CHECK_THAT(std::string(text), Contains(rig.root) && Contains("foreign_store"));
  });
  CHECK(check_folder(rig.root, {}, Policy::kAllow, "CUBIST_FOREIGN_STORE"));
  CHECK(warnings == 0);
  CHECK(check_folder(rig.root, {}, Policy::kWarn, "CUBIST_FOREIGN_STORE"));
  CHECK(check_folder(rig.root, {}, Policy::kWarn, "CUBIST_FOREIGN_STORE"));
  CHECK(warnings == 1);
  const Status refused = check_folder(rig.root, {}, Policy::kRefuse, "CUBIST_FOREIGN_STORE");
  set_log_sink({});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  CHECK_THAT(refused.error().message(), Contains(rig.root) && Contains("0777"));
}

}  // namespace
}  // namespace cubist::trust
