#include "runtime/manifest_path.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"

using namespace cubist;
using Catch::Matchers::Contains;
using test::Environment;

TEST_CASE("a path is taken as it is") {
  CHECK(runtime::find_manifest("some/folder/m").value() == "some/folder/m");
  CHECK(runtime::find_manifest("m.json").value() == "m.json");
}

TEST_CASE("in a build tree a name means the source tree's manifest") {
  const auto path = runtime::find_manifest("cubist-decode");
  REQUIRE(path.has_value());
  CHECK(std::filesystem::equivalent(*path, CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"));
}

TEST_CASE("folders of CUBIST_MANIFESTS come first, in their order") {
  const test::Scratch first;
  const test::Scratch second;
  std::ofstream(second / "mine.json") << "{}";
  std::ofstream(second / "cubist-decode.json") << "{}";
  const Environment env(
      Environment::Values{{"CUBIST_MANIFESTS", ":" + first.path() + "::" + second.path() + ":"}});
  CHECK(runtime::manifest_folders()[0] == first.path());
  CHECK(runtime::manifest_folders()[1] == second.path());
  CHECK(runtime::find_manifest("mine").value() == second / "mine.json");
  CHECK(runtime::find_manifest("cubist-decode").value() == second / "cubist-decode.json");
  const auto names = runtime::shipped_manifests();
  CHECK(std::count(names.begin(), names.end(), "mine") == 1);
  CHECK(std::count(names.begin(), names.end(), "cubist-decode") == 1);
}

TEST_CASE("what lies in a store is found by name in the store that is named, and behind all else") {
  const test::Scratch named;
  const test::Scratch other;
  for (const test::Scratch* store : {&named, &other}) {
    std::filesystem::create_directory(*store / "manifests");
    for (const char* file : {"manifests/installed.json", "manifests/cubist-decode.json"}) {
      std::ofstream(*store / file) << "{}";
    }
  }
  std::ofstream(named / "manifests/only-here.json") << "{}";
  const Environment env(Environment::Values{{"CUBIST_STORE", other.path()}});
  CHECK(runtime::find_manifest("installed").value() == other / "manifests/installed.json");
  CHECK(runtime::find_manifest("installed", named.path()).value() ==
        named / "manifests/installed.json");
  CHECK(runtime::find_manifest("only-here", named.path()).has_value());
  CHECK_FALSE(runtime::find_manifest("only-here").has_value());
  const auto shipped = runtime::find_manifest("cubist-decode", named.path());
  REQUIRE(shipped.has_value());
  CHECK(*shipped != named / "manifests/cubist-decode.json");
}

TEST_CASE("a name that is nowhere is refused with the places") {
  const auto path = runtime::find_manifest("no-such");
  REQUIRE_FALSE(path.has_value());
  CHECK(path.error().code() == StatusCode::kNotFound);
  CHECK_THAT(path.error().message(),
             Contains("'no-such'") && Contains("/manifests") && Contains("CUBIST_MANIFESTS"));
  CHECK(runtime::find_manifest("").error().code() == StatusCode::kInvalidArgument);
}
