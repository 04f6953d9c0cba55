#include "oci/challenge.h"

#include "support/catch.h"

using cubist::oci::Challenge;

namespace {

std::vector<Challenge> parse(const std::vector<std::string>& values) {
  return cubist::oci::parse_challenges(values);
}

}  // namespace

TEST_CASE("a registry's challenge names its token server") {
  const auto found = parse({R"(Bearer realm="https://auth.example/token",service="registry",)"
                            R"(scope="repository:a/b:pull,push",error="invalid_token")"});
  REQUIRE(found.size() == 1);
  CHECK(found[0].scheme == "bearer");
  CHECK(found[0].parameter("realm") == "https://auth.example/token");
  CHECK(found[0].parameter("scope") == "repository:a/b:pull,push");
  CHECK(found[0].parameter("error") == "invalid_token");
  CHECK(found[0].parameter("nonce").empty());
}

TEST_CASE("several challenges come in one header or in several") {
  const auto found =
      parse({R"(Negotiate, Basic realm=x, BEARER Realm = "y \"z\"" , a=b)", "Digest"});
  REQUIRE(found.size() == 4);
  CHECK(found[0].scheme == "negotiate");
  CHECK(found[1].scheme == "basic");
  CHECK(found[1].parameter("realm") == "x");
  CHECK(found[2].scheme == "bearer");
  CHECK(found[2].parameter("realm") == "y \"z\"");
  CHECK(found[2].parameter("a") == "b");
  CHECK(found[3].scheme == "digest");
}

TEST_CASE("what makes no sense is passed over, of two parameters the first counts") {
  CHECK(parse({"", " ,, ", "\x01", "=x", "\"q\""}).empty());
  CHECK(parse({"Bearer realm=\"never ends"}).empty());
  const auto twice = parse({"Bearer realm=a, realm=b"});
  REQUIRE(twice.size() == 1);
  CHECK(twice[0].parameter("realm") == "a");
  CHECK(parse({std::string(3000, 'x') + " a=" + std::string(1000, 'y')}).size() == 1);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "Basic, ";
  CHECK(parse({many}).size() == 16);
}
