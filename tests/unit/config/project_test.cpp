#include "config/project.h"

#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"

namespace cubist::config {
namespace {

using Catch::Matchers::Contains;
using test::Environment;
using test::Scratch;

Sha256Digest digest_of(char digit) { return *Sha256Digest::parse(std::string(64, digit)); }

TEST_CASE("a project is written and read again") {
  Project project;
  CHECK(parse_project(write_project(project), "cubist.json")->manifests.empty());
  project.put({"zeta", "", digest_of('a')});
  project.put({"alpha", "kernels/\"m\".json", digest_of('b')});
  project.put({"zeta", "", digest_of('c')});
  const auto again = parse_project(write_project(project), "cubist.json");
  REQUIRE(again);
  CHECK(again->manifests == project.manifests);
  REQUIRE(again->manifests.size() == 2);
  CHECK(again->manifests[0].name == "alpha");
  CHECK(again->find("zeta")->sha256 == digest_of('c'));
  CHECK(again->find("none") == nullptr);
}

TEST_CASE("a pin's path starts at the project's folder") {
  Project project;
  project.file = "/srv/a/cubist.json";
  CHECK(project.path_of({"m", "kernels/m.json", {}}) == "/srv/a/kernels/m.json");
  CHECK(project.path_of({"m", "../m.json", {}}) == "/srv/m.json");
  CHECK(project.path_of({"m", "/srv/m.json", {}}) == "/srv/m.json");
  CHECK(project.path_of({"m", "", {}}).empty());
}

TEST_CASE("names of manifests cannot be taken for files") {
  for (const char* good : {"a", "flashinfer-0.6.13", "A+b$c_d.e", "0"}) {
    CHECK(is_manifest_name(good));
  }
  for (const char* bad :
       {"", ".a", "-a", "+a", "a/b", "a.json", "a b", "a\n", "\xc3\xa9", "a\\b"}) {
    CAPTURE(bad);
    CHECK_FALSE(is_manifest_name(bad));
  }
  CHECK_FALSE(is_manifest_name(std::string(513, 'a')));
}

struct Malformed {
  std::string manifests;  ///< the value of that key
  const char* place;
  const char* phrase;
};

TEST_CASE("each malformed project is refused with its place and its reason") {
  const std::string digest(64, 'a');
  const std::vector<Malformed> table = {
      {"[]", "/manifests", "expected an object"},
      {"\"x\"", "/manifests", "expected an object"},
      {"null", "/manifests", "found null; give it a value, or leave it out"},
      {R"({"m":{"sha256":")" + digest + R"(","path":null}})", "/manifests/m/path", "found null"},
      {R"({"m":null})", "/manifests/m", "expected an object with sha256"},
      {R"({"m":")" + digest + "\"}", "/manifests/m", "expected an object with sha256"},
      {R"({"m":{}})", "/manifests/m/sha256", "missing"},
      {R"({"m":{"sha256":""}})", "/manifests/m/sha256", "no sha256 of 64"},
      {R"({"m":{"sha256":")" + digest + "a\"}}", "/manifests/m/sha256", "no sha256 of 64"},
      {R"({"m":{"sha256":7}})", "/manifests/m/sha256", "found a number"},
      {R"({"m":{"sha256":")" + digest + R"(","hash":1}})", "/manifests/m", "unknown key 'hash'"},
      {R"({"m":{"sha256":")" + digest + R"(","path":""}})", "/manifests/m/path", "is no path"},
      {R"({"m":{"sha256":")" + digest + R"(","path":"a\u0000"}})", "/manifests/m/path", "no path"},
      {R"({"m":{"sha256":")" + digest + R"(","path":1}})", "/manifests/m/path", "found a number"},
      {R"({"../m":{"sha256":")" + digest + "\"}}", "/manifests/..~1m", "'../m' is no name"},
      {R"({"m.json":{"sha256":")" + digest + "\"}}", "/manifests/m.json", "is no name"},
      {R"({"m":{"sha256":")" + digest + R"("},"m":1})", "", "m"},
  };
  for (const Malformed& bad : table) {
    INFO(bad.manifests);
    const auto found = parse_project(
        R"({"schema":"cubist.project","schema_version":1,"manifests":)" + bad.manifests + "}",
        "cubist.json");
    REQUIRE_FALSE(found);
    CHECK(found.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(found.error().message(),
               Catch::StartsWith("cubist.json: ") && Contains(bad.place) && Contains(bad.phrase));
  }
}

TEST_CASE("a file that is no project is refused") {
  const std::vector<std::pair<const char*, const char*>> table = {
      {"", "line 1"},
      {"[]", "expected an object"},
      {"{}", "/schema: the key is missing"},
      {R"({"schema":"cubist.manifest","schema_version":1,"manifests":{}})", "cubist.project"},
      {R"({"schema":"cubist.project","schema_version":2,"manifests":{}})", "/schema_version"},
      {R"({"schema":"cubist.project","schema_version":1})", "/manifests: the key is missing"},
      {R"({"schema":"cubist.project","schema_version":1,"manifests":{},"x":1})", "unknown key 'x'"},
  };
  for (const auto& [text, phrase] : table) {
    INFO(text);
    const auto found = parse_project(text, "cubist.json");
    REQUIRE_FALSE(found);
    CHECK_THAT(found.error().message(), Contains(phrase));
  }
}

TEST_CASE("the project's file is the nearest one above, unless CUBIST_PROJECT says which") {
  const Environment unset(Environment::Values{{"CUBIST_PROJECT", std::nullopt}});
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "a/b/c");
  const std::string_view text = R"({"schema":"cubist.project","schema_version":1,"manifests":{}})";
  REQUIRE(write_file_atomically(scratch / "a/cubist.json", text));
  CHECK(find_project_file(scratch / "a/b/c").value() == scratch / "a/cubist.json");
  CHECK(find_project_file(scratch / "a").value() == scratch / "a/cubist.json");
  REQUIRE(write_file_atomically(scratch / "a/b/cubist.json", text));
  CHECK(find_project_file(scratch / "a/b/c").value() == scratch / "a/b/cubist.json");
  CHECK(load_project(scratch / "a/b/cubist.json").value().file == scratch / "a/b/cubist.json");
  CHECK(load_project(scratch / "cubist.json").error().code() == StatusCode::kNotFound);
  const Environment named(Environment::Values{{"CUBIST_PROJECT", "/p.json"}});
  CHECK(find_project_file(scratch / "a/b/c").value() == "/p.json");
  const Environment none(Environment::Values{{"CUBIST_PROJECT", ""}});
  CHECK(find_project_file(scratch / "a/b/c").value().empty());
}

TEST_CASE("a project file above that another user owns is refused") {
  if (::geteuid() != 0) {
    WARN("only root can give a file away: not checked");
    return;
  }
  const Environment unset(Environment::Values{{"CUBIST_PROJECT", std::nullopt}});
  const Scratch scratch;
  std::filesystem::create_directories(scratch / "a/b");
  REQUIRE(write_file_atomically(scratch / "a/cubist.json", std::string_view("{}")));
  REQUIRE(::chown((scratch / "a/cubist.json").c_str(), 12345, 12345) == 0);
  const auto found = find_project_file(scratch / "a/b");
  REQUIRE_FALSE(found);
  CHECK_THAT(found.error().message(), Contains("belongs to user 12345"));
  CHECK(find_project_file(scratch / "a"));  // where the command runs: as its user wants
}

}  // namespace
}  // namespace cubist::config
