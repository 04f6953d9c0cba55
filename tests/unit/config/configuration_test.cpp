#include "config/configuration.h"

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
using Strings = std::vector<std::string>;

TEST_CASE("every key is read, and ~/ is the user's home") {
  const auto found = parse_configuration(
      R"({"manifests":["~/m","/srv/m"],"store":"~/store","base_stores":["/a","/b"],
          "sources":["https://mirror.example/fmha/","pip:some-cubins==1.0","~/a.whl"]})",
      "config.json", "/home/me");
  REQUIRE(found);
  CHECK(found->manifests == Strings{"/home/me/m", "/srv/m"});
  CHECK(found->store == "/home/me/store");
  CHECK(found->base_stores == Strings{"/a", "/b"});
  CHECK(found->sources ==
        Strings{"https://mirror.example/fmha/", "pip:some-cubins==1.0", "/home/me/a.whl"});
}

TEST_CASE("each key stands for one environment variable, a missing one for none") {
  CHECK(as_environment(*parse_configuration("{}", "config.json", "/home/me")).empty());
  const auto found = parse_configuration(
      R"({"manifests":["/m","/n"],"store":"/s","base_stores":["/a","/b"],"sources":["x","y"],
          "trusted_keys":["RWa","~/k.pub"],"manifest_signatures":"refuse","key_statements":["/k.json"],
          "revocations":["/r.json","~/q.json"],"foreign_store":"allow"})",
      "config.json", "/home/me");
  REQUIRE(found);
  std::vector<std::pair<std::string, std::string>> variables;
  for (const EnvironmentValue& one : as_environment(*found)) {
    variables.emplace_back(one.name, one.value);
  }
  CHECK(as_environment(*found)[1].origin == "config.json:1: /store");
  CHECK(as_environment(*found)[5].origin == "config.json:2: /manifest_signatures");
  CHECK(variables == std::vector<std::pair<std::string, std::string>>{
                         {"CUBIST_MANIFESTS", "/m:/n"},
                         {"CUBIST_STORE", "/s"},
                         {"CUBIST_STORE_BASE", "/a:/b"},
                         {"CUBIST_SOURCES", "x y"},
                         {"CUBIST_TRUSTED_KEYS", "RWa /home/me/k.pub"},
                         {"CUBIST_MANIFEST_SIGNATURES", "refuse"},
                         {"CUBIST_KEY_STATEMENTS", "/k.json"},
                         {"CUBIST_REVOCATIONS", "/r.json:/home/me/q.json"},
                         {"CUBIST_FOREIGN_STORE", "allow"}});
}

struct Malformed {
  std::string text;
  const char* place;
  const char* phrase;
};

TEST_CASE("each malformed configuration is refused with its place and its reason") {
  const std::vector<Malformed> table = {
      {"", "", "line 1"},
      {"{", "", "line 1"},
      {"{} {}", "", "line 1"},
      {"[]", "(document)", "expected an object"},
      {"null", "(document)", "expected an object"},
      {"\"store\"", "(document)", "expected an object"},
      {R"({"stor":"/s"})", "(document)", "unknown key 'stor'; known here are manifests, store"},
      {R"({"Store":"/s"})", "(document)", "unknown key 'Store'"},
      {R"({"":1})", "(document)", "unknown key ''"},
      {"{\"a\\u001b[31m\":1}", "(document)", "unknown key 'a\\x1b[31m'"},
      {R"({"store":"/s","store":"/t"})", "", "store"},
      {R"({"store":7})", "/store", "found a number, expected a string"},
      {R"({"store":["/s"]})", "/store", "found an array, expected a string"},
      {R"({"store":""})", "/store", "no absolute path"},
      {R"({"store":"relative"})", "/store", "'relative' is no absolute path"},
      {R"({"store":"~other/s"})", "/store", "write /PATH or ~/PATH"},
      {R"({"store":"/s\u0000x"})", "/store", "NUL"},
      {R"({"store":null})", "/store", "found null; give it a value, or leave it out"},
      {R"({"sources":null})", "/sources", "found null"},
      {R"({"base_stores":"/a"})", "/base_stores", "found a string, expected an array"},
      {R"({"base_stores":["/a",7]})", "/base_stores/1", "found a number"},
      {R"({"base_stores":["/a",null]})", "/base_stores/1", "found null"},
      {R"({"base_stores":["/a:/b"]})", "/base_stores/0", "holds a ':'"},
      {R"({"manifests":{"a":"/a"}})", "/manifests", "found an object, expected an array"},
      {R"({"manifests":["m.json"]})", "/manifests/0", "no absolute path"},
      {R"({"sources":["https://a /"]})", "/sources/0", "white space"},
      {R"({"sources":[""]})", "/sources/0", "means nothing"},
      {R"({"sources":[["a"]]})", "/sources/0", "found an array"},
      {R"({"trusted_keys":"RWa"})", "/trusted_keys", "expected an array"},
      {R"({"trusted_keys":["RWa RWb"]})", "/trusted_keys/0", "white space"},
      {R"({"trusted_keys":["key.pub"]})", "/trusted_keys/0", "no absolute path"},
      {R"({"manifest_signatures":"no"})", "/manifest_signatures", "allow, warn or refuse"},
      {R"({"manifest_signatures":true})", "/manifest_signatures", "expected a string"},
      {R"({"foreign_store":"Warn"})", "/foreign_store", "is 'Warn'"},
      {R"({"revocations":["r.json"]})", "/revocations/0", "no absolute path"},
      {R"({"key_statements":["/a:b"]})", "/key_statements/0", "holds a ':'"},
      {"{\"sources\":" + std::string(100, '['), "", "nest"},
  };
  for (const Malformed& bad : table) {
    INFO(bad.text);
    const auto found = parse_configuration(bad.text, "config.json", "/home/me");
    REQUIRE_FALSE(found);
    CHECK(found.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(found.error().message(),
               Catch::StartsWith("config.json: ") && Contains(bad.place) && Contains(bad.phrase));
    CHECK(found.error().message().size() < 400);
  }
}

TEST_CASE("all that is wrong is told, and the rest is read") {
  const auto read = read_configuration(R"({
    "stoer": "/s",
    "store": "/good",
    "sources": null,
    "manifest_signatures": "maybe",
    "base_stores": ["/a", "b"]
  })",
                                       "config.json", "/home/me");
  REQUIRE(read);
  CHECK(read->configuration.store == "/good");
  CHECK(read->configuration.base_stores.empty());
  CHECK(read->configuration.manifest_signatures.empty());
  Strings told;
  for (const Error& complaint : read->complaints) told.push_back(complaint.message());
  REQUIRE(told.size() == 4);
  CHECK_THAT(told[0], Catch::StartsWith("config.json:4: /sources: found null"));
  CHECK_THAT(told[1], Catch::StartsWith("config.json:2: (document): unknown key 'stoer'"));
  CHECK_THAT(told[2], Catch::StartsWith("config.json:6: /base_stores/1: 'b' is no absolute path"));
  CHECK_THAT(told[3], Catch::StartsWith("config.json:5: /manifest_signatures: is 'maybe'"));
}

TEST_CASE("~/ without a home is refused") {
  CHECK_FALSE(parse_configuration(R"({"store":"~/s"})", "config.json", ""));
}

TEST_CASE(
    "the file is the one of CUBIST_CONFIG, else below XDG_CONFIG_HOME, else below ~/.config") {
  Environment all(Environment::Values{
      {"CUBIST_CONFIG", "/c.json"}, {"XDG_CONFIG_HOME", "/xdg"}, {"HOME", "/home/me"}});
  CHECK(configuration_path().path == "/c.json");
  CHECK(configuration_path().required);
  Environment named(Environment::Values{{"CUBIST_CONFIG", ""}});
  CHECK(configuration_path().path.empty());
  Environment xdg(Environment::Values{{"CUBIST_CONFIG", std::nullopt}});
  CHECK(configuration_path().path == "/xdg/cubist/config.json");
  CHECK_FALSE(configuration_path().required);
  Environment relative(Environment::Values{{"XDG_CONFIG_HOME", "xdg"}});
  CHECK(configuration_path().path == "/home/me/.config/cubist/config.json");
  Environment homeless(Environment::Values{{"HOME", std::nullopt}});
  CHECK(configuration_path().path.empty());
}

TEST_CASE("a missing file is an empty configuration, unless it was named") {
  const Scratch scratch;
  const std::string path = scratch / "config.json";
  const auto none = load_configuration({path, false});
  REQUIRE(none);
  CHECK(as_environment(*none).empty());
  CHECK(load_configuration({path, true}).error().code() == StatusCode::kNotFound);
  CHECK(load_configuration({"", false}));
  REQUIRE(write_file_atomically(path, std::string_view(R"({"store":"/s"})")));
  CHECK(load_configuration({path, true})->store == "/s");
  CHECK(load_configuration({scratch.path(), false}).error().code() == StatusCode::kIo);
}

TEST_CASE("sources in the environment are separated by white space") {
  Environment two(Environment::Values{{"CUBIST_SOURCES", "  a  b\n"}});
  CHECK(sources_from_environment() == Strings{"a", "b"});
  Environment none(Environment::Values{{"CUBIST_SOURCES", std::nullopt}});
  CHECK(sources_from_environment().empty());
}

}  // namespace
}  // namespace cubist::config
