#include "oci/reference.h"

#include "support/catch.h"

using cubist::StatusCode;
using cubist::oci::parse_reference;

namespace {

const std::string kDigits(64, 'a');

void check_refused(const std::string& text, const std::string& words) {
  INFO(text);
  const auto found = parse_reference(text);
  REQUIRE_FALSE(found);
  CHECK(found.error().code() == StatusCode::kInvalidArgument);
  CHECK_THAT(found.error().message(), Catch::Contains(words));
}

}  // namespace

TEST_CASE("a reference is taken apart, and its text is the same again") {
  const auto found = parse_reference("oci://Registry.Example.com:5000/team/kernels_a.b-c:v1.2_X");
  REQUIRE(found);
  CHECK(found->host == "registry.example.com:5000");
  CHECK(found->repository == "team/kernels_a.b-c");
  CHECK(found->tag == "v1.2_X");
  CHECK(found->wanted() == "v1.2_X");
  CHECK(parse_reference(found->text()).value() == *found);
}

TEST_CASE("a digest counts where one is given, and the tag stays for people") {
  const auto found = parse_reference("oci://h/n:tag@sha256:" + kDigits);
  REQUIRE(found);
  CHECK(found->wanted() == "sha256:" + kDigits);
  CHECK(found->tag == "tag");
  CHECK(parse_reference(found->text()).value() == *found);
  CHECK(parse_reference("oci://h/n@sha256:" + kDigits)->tag.empty());
}

TEST_CASE("hosts are names, addresses, and addresses in brackets") {
  for (const char* host : {"localhost", "localhost:5000", "127.0.0.1:1", "[::1]", "[fe80::1]:443",
                           "a-b.example", "xn--bcher-kva.example"}) {
    INFO(host);
    const auto found = parse_reference(std::string("oci://") + host + "/n:t");
    REQUIRE(found);
    CHECK(found->host == host);
  }
  for (const char* host : {"", "-a", "a-", "a..b", "a_b", "h:", "h:0", "h:65536", "h:+1", "h:1x",
                           "[::1", "[::1]x", "[x]", "[::1]:", "h\n", "h%2f"}) {
    check_refused(std::string("oci://") + host + "/n:t", "host");
  }
  check_refused(std::string("oci://[::1") + '\0' + "\n]/n:t", "host");
}

TEST_CASE("repositories and tags are those that registries take; nothing leads elsewhere") {
  for (const char* name : {"", "/", "..", "a/../b", "a//b", "/a", "a/", "A", "a..b", "a___b", "-a",
                           "a-", ".a", "a b", "a%2e", "a\\b", "a?b", "a#b"}) {
    check_refused(std::string("oci://h/") + name + ":t", "repository");
  }
  check_refused("oci://h/" + std::string(256, 'a') + ":t", "repository");
  for (const char* tag : {"", ".a", "-a", "a/b", "a b", "a?", "a:b", "\xc3\xa9"}) {
    check_refused(std::string("oci://h/n:") + tag, "tag");
  }
  check_refused("oci://h/n:" + std::string(129, 't'), "tag");
  CHECK(parse_reference("oci://h/a--b__c.d:" + std::string(128, 't')));
}

TEST_CASE("what is missing or odd is named") {
  check_refused("h/n:t", "oci://");
  check_refused("docker://h/n:t", "oci://");
  check_refused("oci://h", "repository");
  check_refused("oci://h/n", "neither tag nor digest");
  check_refused("oci://h/n@md5:00", "digest");
  check_refused("oci://h/n@sha256:" + std::string(63, 'a'), "digest");
  check_refused("oci://h/n@sha256:" + std::string(64, 'A'), "digest");
  check_refused("oci://h/" + std::string(2000, 'a'), "too long");
}

TEST_CASE("credentials in a reference are refused and not repeated") {
  const auto found = parse_reference("oci://user:hunter2@h/n:t");
  REQUIRE_FALSE(found);
  CHECK_THAT(found.error().message(), Catch::Contains("credentials"));
  CHECK_THAT(found.error().message(), !Catch::Contains("hunter2"));
  for (const char* wrong :
       {"oci://u:a/hunter2@h/x:t", "oci://h/x?token=hunter2", "oci://u:hunter2@h"}) {
    const auto refused = parse_reference(wrong);
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message(), !Catch::Contains("hunter2"));
  }
}
