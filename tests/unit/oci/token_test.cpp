#include "oci/token.h"

#include "base/base64.h"
#include "oci/bytes.h"
#include "support/catch.h"

using cubist::StatusCode;
using cubist::oci::describe_validity;
using cubist::oci::parse_token_answer;

namespace {

std::string packed(const std::string& text) {
  return cubist::to_base64(cubist::oci::bytes_of(text));
}

std::string jwt(const std::string& claims) {
  return "eyJhbGciOiJub25lIn0." + packed(claims) + ".sig";
}

}  // namespace

TEST_CASE("a token server's answer has the token under either name") {
  const auto token = parse_token_answer(R"({"token":"abc","expires_in":300,"issued_at":"x"})", "s");
  REQUIRE(token);
  CHECK(token->text == "abc");
  CHECK(token->lifetime == std::chrono::seconds(300));
  CHECK(parse_token_answer(R"({"access_token":"abc"})", "s")->lifetime == std::chrono::seconds(60));
  CHECK(parse_token_answer(R"({"token":"a","access_token":"b"})", "s")->text == "a");
}

TEST_CASE("an answer that is none is refused without being shown") {
  for (const char* text :
       {"", "hunter2", "[]", "{}", R"({"token":"hunter2\r\nX: y"})", R"({"token":""})",
        R"({"token":["hunter2"]})", R"({"token":"hunter2","expires_in":"hunter2"})",
        R"({"token":"hunter2","expires_in":-1})", R"({"token":"hunter 2"})"}) {
    INFO(text);
    const auto token = parse_token_answer(text, "token server x");
    REQUIRE_FALSE(token);
    CHECK(token.error().code() == StatusCode::kNetwork);
    CHECK_THAT(token.error().message(), Catch::Contains("token server x"));
    CHECK_THAT(token.error().message(), !Catch::Contains("hunter"));
  }
  CHECK_FALSE(parse_token_answer(R"({"token":")" + std::string(100'000, 'a') + "\"}", "s"));
}

TEST_CASE("a token's own dates tell why it is refused") {
  CHECK(describe_validity(jwt(R"({"exp":1000,"nbf":10})"), 500).empty());
  CHECK(describe_validity(jwt(R"({"exp":1000})"), 2000) == "it expired at 1970-01-01 00:16:40 UTC");
  CHECK(describe_validity(jwt(R"({"exp":90000,"nbf":86400})"), 5) ==
        "it is valid only from 1970-01-02 00:00:00 UTC on");
  for (const char* text : {"", "opaque", "a.b", "a.!.c", "..", "a.W10.c"}) {
    CHECK(describe_validity(text, 5).empty());
  }
  CHECK(describe_validity(jwt(R"({"exp":"soon"})"), 5).empty());
  CHECK(describe_validity(jwt(R"({"exp":1e300})"), 5).empty());
}
