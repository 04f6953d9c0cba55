#include "oci/credentials.h"

#include <sys/stat.h>

#include <fstream>

#include "base/base64.h"
#include "oci/base64.h"
#include "oci/bytes.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/scratch.h"

using cubist::StatusCode;
using cubist::oci::Credentials;
using cubist::oci::find_credentials;
using cubist::oci::find_entry;
using cubist::oci::parse_credential_file;
using cubist::oci::parse_reference;
using cubist::oci::Reference;
using cubist::test::Environment;
using cubist::test::Scratch;

namespace {

std::string packed(const std::string& text) {
  return cubist::to_base64(cubist::oci::bytes_of(text));
}

Reference reference(const std::string& place) {
  return parse_reference("oci://" + place + ":t").value();
}

std::string entry(const std::string& host, const std::string& user_password) {
  return "{\"auths\":{\"" + host + "\":{\"auth\":\"" + packed(user_password) + "\"}}}";
}

void write(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::ofstream(path) << text;
  ::chmod(path.c_str(), mode);
}

}  // namespace

TEST_CASE(
    "base64 is read in both alphabets, with padding or without, and written as headers have it") {
  using cubist::oci::from_base64;
  CHECK(packed("") == "");
  CHECK(packed("u:p") == "dTpw");
  CHECK(packed("u:pw") == "dTpwdw==");
  CHECK(from_base64("dTpwdw") == std::string("u:pw"));
  CHECK(from_base64("dTpwdw==") == std::string("u:pw"));
  CHECK(from_base64("-_-_") == from_base64("+/+/"));
  CHECK_FALSE(from_base64("a"));
  CHECK_FALSE(from_base64("ab=c"));
  CHECK_FALSE(from_base64("a b="));
  for (const std::string text : {"a", "ab", "abc", "abcd", std::string("\0\xff\x80", 3).c_str()}) {
    CHECK(from_base64(packed(text)) == text);
  }
}

TEST_CASE("the longest key that fits a repository counts") {
  const auto file = parse_credential_file(
      R"({"auths":{"h":{"username":"host","password":"p"},"h/team":{"username":"team","password":"p"},)"
      R"("h/team/k":{"auth":"dTpw"},"https://docker.example/v1/":{"auth":"ZDpw"}},"HttpHeaders":{}})",
      "f");
  REQUIRE(file);
  CHECK(find_entry(*file, reference("h/team/k"))->user == "u");
  CHECK(find_entry(*file, reference("h/team/other"))->user == "team");
  CHECK(find_entry(*file, reference("h/teams"))->user == "host");
  CHECK(find_entry(*file, reference("docker.example/x"))->user == "d");
  CHECK(find_entry(*file, reference("h.evil/team")) == nullptr);
  CHECK(find_entry(*file, reference("h:5000/team")) == nullptr);
}

TEST_CASE("a password may hold colons; docker's padding is cut") {
  const auto file = parse_credential_file(entry("h", std::string("u:a:b\0\0", 7)), "f");
  REQUIRE(file);
  CHECK(file->auths.at("h").user == "u");
  CHECK(file->auths.at("h").password == "a:b");
}

TEST_CASE("a broken credentials file is named, and nothing of it is shown") {
  for (const char* text :
       {"hunter2", "[\"hunter2\"]", "{\"auths\":{\"h\":{\"auth\":\"hunter2!\"}}}",
        "{\"auths\":{\"h\":{\"password\":[\"hunter2\"]}}}", "{\"auths\":\"hunter2\"",
        "{\"auths\":{\"h\":{\"auth\":\"aHVudGVyMg==\"}}}", "{\"credsStore\":[\"hunter2\"]}",
        "{\"auths\":{\"h\":\"hunter2\"}}"}) {
    INFO(text);
    const auto file = parse_credential_file(text, "/x/config.json");
    REQUIRE_FALSE(file);
    CHECK(file.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(file.error().message(), Catch::Contains("/x/config.json"));
    CHECK_THAT(file.error().message(), !Catch::Contains("hunter2"));
  }
}

TEST_CASE("files are looked at in the usual order, the one that is named alone") {
  const Scratch scratch;
  const std::string folder = scratch.path();
  for (const char* name : {"run", "run/containers", "home", "home/.config",
                           "home/.config/containers", "home/.docker"}) {
    ::mkdir((scratch / name).c_str(), 0700);
  }
  const Environment environment({{"HOME", folder + "/home"},
                                 {"XDG_RUNTIME_DIR", folder + "/run"},
                                 {"XDG_CONFIG_HOME", ""},
                                 {"DOCKER_CONFIG", ""},
                                 {"REGISTRY_AUTH_FILE", ""}});
  CHECK(find_credentials(reference("h/n"))->empty());
  write(folder + "/home/.docker/config.json", entry("h", "docker:p"));
  CHECK(find_credentials(reference("h/n"))->user == "docker");
  write(folder + "/home/.config/containers/auth.json", entry("h", "config:p"));
  CHECK(find_credentials(reference("h/n"))->user == "config");
  write(folder + "/run/containers/auth.json", entry("other", "run:p"));
  CHECK(find_credentials(reference("h/n"))->user == "config");
  CHECK(find_credentials(reference("other/n"))->user == "run");
  const Environment named({{"REGISTRY_AUTH_FILE", folder + "/mine.json"}});
  CHECK(find_credentials(reference("h/n")).error().code() == StatusCode::kNotFound);
  write(folder + "/mine.json", entry("h", "mine:p"));
  CHECK(find_credentials(reference("h/n"))->user == "mine");
  CHECK(find_credentials(reference("other/n"))->empty());
}

TEST_CASE(
    "credential helpers are asked with the host, and their failures are told without secrets") {
  const Scratch scratch;
  const std::string folder = scratch.path();
  const Environment environment({{"REGISTRY_AUTH_FILE", folder + "/auth.json"},
                                 {"PATH", folder + ":" + std::getenv("PATH")}});
  write(folder + "/auth.json", R"({"credHelpers":{"h":"made"},"credsStore":"all"})");
  write(folder + "/docker-credential-made",
        "#!/bin/sh\nread host\necho "
        "'{\"ServerURL\":\"'$host'\",\"Username\":\"'$host'\",\"Secret\":\"s\"}'\n",
        0700);
  write(folder + "/docker-credential-all",
        "#!/bin/sh\necho '{\"Username\":\"<token>\",\"Secret\":\"identity\"}'\n", 0700);
  const auto made = find_credentials(reference("h/n"));
  REQUIRE(made);
  CHECK(made->user == "h");
  CHECK(made->password == "s");
  const auto all = find_credentials(reference("other/n"));
  REQUIRE(all);
  CHECK(all->identity_token == "identity");

  write(folder + "/docker-credential-all",
        "#!/bin/sh\necho credentials not found in native keychain\nexit 1\n", 0700);
  CHECK(find_credentials(reference("other/n"))->empty());
  write(folder + "/docker-credential-all", "#!/bin/sh\necho hunter2 >&2\nexit 3\n", 0700);
  const auto failed = find_credentials(reference("other/n"));
  REQUIRE_FALSE(failed);
  CHECK_THAT(failed.error().message(), Catch::Contains("docker-credential-all"));
  CHECK_THAT(failed.error().message(), !Catch::Contains("hunter2"));
  write(folder + "/docker-credential-all", "#!/bin/sh\necho hunter2\n", 0700);
  CHECK_THAT(find_credentials(reference("other/n")).error().message(), !Catch::Contains("hunter2"));
  write(folder + "/auth.json", R"({"credsStore":"../evil"})");
  CHECK_THAT(find_credentials(reference("h/n")).error().message(), Catch::Contains("usable name"));
}

TEST_CASE("a credential helper that is not there is named, with who asks for it and what to do") {
  const Scratch scratch;
  const std::string folder = scratch.path();
  ::mkdir((scratch / ".docker").c_str(), 0700);
  const Environment environment({{"HOME", folder},
                                 {"XDG_RUNTIME_DIR", ""},
                                 {"XDG_CONFIG_HOME", ""},
                                 {"DOCKER_CONFIG", ""},
                                 {"REGISTRY_AUTH_FILE", ""}});
  const std::string file = folder + "/.docker/config.json";
  for (const char* text : {R"({"credsStore":"nowhere-to-be-found"})",
                           R"({"credHelpers":{"h":"nowhere-to-be-found"}})"}) {
    write(file, text);
    const auto found = find_credentials(reference("h/n"));
    REQUIRE_FALSE(found);  // and not passed over like a file that is not there
    CHECK(found.error().code() == StatusCode::kIo);
    CHECK_THAT(found.error().message(),
               Catch::Contains(file) && Catch::Contains("'nowhere-to-be-found' for h") &&
                   Catch::Contains("'docker-credential-nowhere-to-be-found' on PATH: install it") &&
                   Catch::Contains("REGISTRY_AUTH_FILE"));
  }
}
