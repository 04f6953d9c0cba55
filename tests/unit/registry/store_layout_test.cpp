#include "registry/store_layout.h"

#include <cstdlib>
#include "support/catch.h"
#include "support/environment.h"

using cubist::entry_path;
using cubist::parse_entry_name;
using cubist::Sha256Digest;
using cubist::store_options_from_environment;
using cubist::test::Environment;

namespace {

std::string root() { return store_options_from_environment().value().root; }

}  // namespace

TEST_CASE(
    "the store's root comes from --store, CUBIST_STORE, XDG_CACHE_HOME, HOME, in this order") {
  const Environment environment({{"CUBIST_STORE", "/a/store/"},
                                 {"XDG_CACHE_HOME", "/xdg"},
                                 {"HOME", "/home/u"},
                                 {"CUBIST_STORE_BASE", std::nullopt}});
  CHECK(store_options_from_environment("/given").value().root == "/given");
  CHECK(root() == "/a/store");
  ::unsetenv("CUBIST_STORE");
  CHECK(root() == "/xdg/cubist");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  CHECK(root() == "/home/u/.cache/cubist");
  CHECK(store_options_from_environment().value().base_roots.empty());
}

TEST_CASE("an empty CUBIST_STORE counts as unset, and a relative root becomes absolute") {
  const Environment environment(
      {{"CUBIST_STORE", ""}, {"XDG_CACHE_HOME", std::nullopt}, {"HOME", "/home/u"}});
  CHECK(root() == "/home/u/.cache/cubist");
  CHECK(store_options_from_environment("some/where").value().root.front() == '/');
}

TEST_CASE("base layers are split at colons and empty parts are skipped") {
  const Environment environment(Environment::Values{{"CUBIST_STORE_BASE", "/one::/two/:"}});
  CHECK(store_options_from_environment("/r").value().base_roots ==
        std::vector<std::string>{"/one", "/two"});
}

TEST_CASE("a URL is no store, but a folder may have a colon and slashes in it") {
  for (const char* url : {"https://h/x", "oci://h/n:t", "svn+ssh://h"}) {
    CHECK_FALSE(store_options_from_environment(url));
  }
  CHECK(store_options_from_environment("/a/x://y"));
  const Environment environment(Environment::Values{{"CUBIST_STORE_BASE", "/one://two"}});
  CHECK(store_options_from_environment("/r").value().base_roots ==
        std::vector<std::string>{"/one", "/two"});
}

TEST_CASE("an entry's path has its digest, and only that name reads back as one") {
  const Sha256Digest digest = cubist::sha256({});
  const std::string path = entry_path("/s", digest);
  CHECK(path ==
        "/s/sha256/e3/e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.cubin");
  CHECK(parse_entry_name(digest.hex() + ".cubin") == digest);
  CHECK_FALSE(parse_entry_name(digest.hex()));
  CHECK_FALSE(parse_entry_name("E3" + digest.hex().substr(2) + ".cubin"));
  CHECK_FALSE(parse_entry_name(digest.hex() + "0.cubin"));
  CHECK_FALSE(parse_entry_name(".cubin"));
}
