#include "support/catch.h"
#include "support/minisign.h"
#include "trust/key_statement.h"
#include "trust/revocations.h"

namespace cubist::trust {
namespace {

using Catch::Matchers::Contains;

const std::string kHash(64, 'a');
const std::string kOther(64, 'b');
const std::string kThird(64, 'c');

std::string list_text(const std::string& members) {
  return R"({"schema": "cubist.revocations", "schema_version": 1, )" + members + "}";
}

struct Broken {
  std::string text;
  const char* place;
  const char* phrase;
};

TEST_CASE("a revocation list is read, and says why") {
  const auto list = parse_revocations(
      list_text(R"("serial": 4, "name": "advisories", "expires": "2027-01-31", "entries": [
        {"sha256": ")" +
                kHash + R"(", "reason": "wrong at head_dim 192", "replacement": ")" + kOther +
                R"("}, {"sha256": ")" + kThird + R"(", "reason": "hangs"}])"),
      "revoked.json");
  REQUIRE(list);
  CHECK(list->serial == 4);
  CHECK(list->name == "advisories");
  CHECK(list->expires == "2027-01-31");
  REQUIRE(list->entries.size() == 2);
  RevokedKernels revoked;
  CHECK(revoked.empty());
  revoked.add(*list);
  CHECK(revoked.size() == 2);
  const Sha256Digest digest = *Sha256Digest::parse(kHash);
  CHECK(revoked.why(digest) ==
        "revoked by 'revoked.json' (serial 4): wrong at head_dim 192; use " + kOther + " instead");
  CHECK(revoked.check(digest, "kernel_a").error().code() == StatusCode::kUntrusted);
  CHECK_THAT(revoked.check(digest, "kernel_a").error().message(),
             Contains("kernel 'kernel_a'") && Contains("wrong at head_dim 192"));
  CHECK_THAT(*revoked.why(*Sha256Digest::parse(kThird)), !Contains("instead"));
  CHECK(revoked.check(*Sha256Digest::parse(kOther), "kernel_b"));
}

TEST_CASE("the first list that revokes a kernel says why") {
  RevokedKernels revoked;
  for (const char* reason : {"first", "second"}) {
    revoked.add(*parse_revocations(list_text(R"("serial": 1, "entries": [{"sha256": ")" + kHash +
                                             R"(", "reason": ")" + reason + R"("}])"),
                                   "r.json"));
  }
  CHECK(revoked.size() == 1);
  CHECK_THAT(*revoked.why(*Sha256Digest::parse(kHash)), Contains("first"));
}

TEST_CASE("a list may be empty: a publisher that has revoked nothing yet") {
  CHECK(parse_revocations(list_text(R"("serial": 1, "entries": [])"), "r.json"));
}

TEST_CASE("what is no revocation list is refused by place") {
  const auto entry = [](const std::string& members) {
    return list_text(R"("serial": 1, "entries": [{)" + members + "}]");
  };
  const std::string hash = R"("sha256": ")" + kHash + '"';
  const std::vector<Broken> table = {
      {"", "r.json", "not a JSON text"},
      {"[]", "(document)", "expected an object"},
      {"{}", "/schema", "missing"},
      {R"({"schema": "cubist.keys", "schema_version": 1, "serial": 1, "entries": []})", "/schema",
       "expected 'cubist.revocations'"},
      {R"({"schema": "cubist.revocations", "schema_version": 2, "serial": 1, "entries": []})",
       "/schema_version", "version 2 is not known here"},
      {list_text(R"("entries": [])"), "/serial", "missing"},
      {list_text(R"("serial": 0, "entries": [])"), "/serial", "must be 1.."},
      {list_text(R"("serial": -1, "entries": [])"), "/serial", "must be 1.."},
      {list_text(R"("serial": 9007199254740992, "entries": [])"), "/serial", "must be 1.."},
      {list_text(R"("serial": 1e3, "entries": [])"), "/serial", "a whole number"},
      {list_text(R"("serial": "1", "entries": [])"), "/serial", "a whole number"},
      {list_text(R"("serial": 1)"), "/entries", "missing"},
      {list_text(R"("serial": 1, "entries": {})"), "/entries", "an array"},
      {list_text(R"("serial": 1, "serial": 2, "entries": [])"), "r.json", "twice"},
      {list_text(R"("serial": 1, "entries": [], "more": 1)"), "(document)", "unknown key 'more'"},
      {list_text(R"("serial": 1, "name": "a b", "entries": [])"), "/name", "other characters"},
      {list_text(R"("serial": 1, "name": ")" + std::string(129, 'a') + R"(", "entries": [])"),
       "/name", "other characters"},
      {list_text(R"("serial": 1, "expires": "soon", "entries": [])"), "/expires", "no date"},
      {list_text(R"("serial": 1, "expires": "2027-02-30", "entries": [])"), "/expires", "no date"},
      {list_text(R"("serial": 1, "entries": [1])"), "/entries/0", "expected an object"},
      {entry(""), "/entries/0/sha256", "missing"},
      {entry(hash), "/entries/0/reason", "missing"},
      {entry(hash + R"(, "reason": "")"), "/entries/0/reason", "one line"},
      {entry(hash + R"(, "reason": "a\nb")"), "/entries/0/reason", "one line"},
      {entry(hash + R"(, "reason": "\u001b[2J")"), "/entries/0/reason", "one line"},
      {entry(hash + R"(, "reason": ")" + std::string(1025, 'x') + '"'), "/entries/0/reason",
       "one line"},
      {entry(hash + R"(, "reason": "a", "replacement": "b")"), "/entries/0/replacement",
       "no sha256"},
      {entry(hash + R"(, "reason": "a", "replacement": ")" + kHash + '"'), "/entries",
       "is revoked too"},
      {entry(hash + R"(, "reason": "a", "since": "b")"), "/entries/0", "unknown key 'since'"},
      {entry(R"("sha256": "abc", "reason": "a")"), "/entries/0/sha256", "no sha256"},
      {entry(hash + R"(, "reason": "a"}, {)" + hash + R"(, "reason": "b")"), "/entries/1/sha256",
       "another entry"},
  };
  for (const Broken& one : table) {
    CAPTURE(one.text.substr(0, 300), one.place);
    const auto refused = parse_revocations(one.text, "r.json");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(refused.error().message(),
               Contains("r.json") && Contains(one.place) && Contains(one.phrase));
    CHECK(refused.error().message().find('\x1b') == std::string::npos);
  }
}

TEST_CASE("a key statement adds and retires keys") {
  const std::string a = test::Signer().public_line();
  const std::string b = test::Signer().public_line();
  const auto statement = parse_key_statement(
      R"({"schema": "cubist.keys", "schema_version": 1, "serial": 2, "add": [")" + a +
          R"("], "retire": [")" + b + R"("]})",
      "keys-2.json");
  REQUIRE(statement);
  CHECK(statement->serial == 2);
  REQUIRE(statement->add.size() == 1);
  CHECK(statement->add[0].text() == a);
  REQUIRE(statement->retire.size() == 1);
  CHECK(statement->retire[0].text() == b);
}

TEST_CASE("what is no key statement is refused by place") {
  const std::string key = test::Signer().public_line();
  const auto text = [](const std::string& members) {
    return R"({"schema": "cubist.keys", "schema_version": 1, "serial": 1)" + members + "}";
  };
  const std::vector<Broken> table = {
      {"", "k.json", "not a JSON text"},
      {"7", "(document)", "expected an object"},
      {text(""), "(document)", "says nothing"},
      {text(R"(, "add": [])"), "(document)", "says nothing"},
      {text(R"(, "add": ")" + key + '"'), "/add", "an array"},
      {text(R"(, "add": [null])"), "/add/0", "found null"},
      {text(R"(, "add": [{}])"), "/add/0", "a string"},
      {text(R"(, "add": ["RW"])"), "/add/0", "no minisign public key"},
      {text(R"(, "add": [")" + key + R"(", ")" + key + R"("])"), "/add/1", "twice"},
      {text(R"(, "add": [")" + key + R"("], "retire": [")" + key + R"("])"), "/add",
       "is retired too"},
      {text(R"(, "add": [")" + key + R"("], "keys": [])"), "(document)", "unknown key"},
      {R"({"schema": "cubist.revocations", "schema_version": 1, "serial": 1, "add": [")" + key +
           R"("]})",
       "/schema", "expected 'cubist.keys'"},
  };
  for (const Broken& one : table) {
    CAPTURE(one.text, one.place);
    const auto refused = parse_key_statement(one.text, "k.json");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(refused.error().message(),
               Contains("k.json") && Contains(one.place) && Contains(one.phrase));
  }
}

}  // namespace
}  // namespace cubist::trust
