#include "trust/trust.h"

#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "support/catch.h"
#include "support/environment.h"
#include "support/minisign.h"
#include "support/scratch.h"

namespace cubist::trust {
namespace {

using Catch::Matchers::Contains;
using test::Scratch;
using test::Signer;

constexpr std::string_view kManifest = "any bytes";

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Warnings while it lives.
class Warnings {
 public:
  Warnings() {
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) text_ += std::string(text) + "\n";
    });
  }
  ~Warnings() { set_log_sink({}); }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// A folder of files for one test: manifest, lists, statements, and a store's state.
class Publisher {
 public:
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = folder_ / name;
    REQUIRE(write_file_atomically(path, text));
    return path;
  }
  std::string manifest() const { return write("m.json", std::string(kManifest)); }
  std::string keys(const Signer& by, int serial, const std::string& add,
                   const std::string& retire) const {
    const std::string path = write(
        fmt::format("keys-{}.json", serial),
        fmt::format(R"({{"schema": "cubist.keys", "schema_version": 1, "serial": {}, "add": [{}],)"
                    R"( "retire": [{}]}})",
                    serial, add, retire));
    by.sign_file(path);
    return path;
  }
  std::string list(const Signer& by, int serial, char digit = 'a') const {
    const std::string path =
        write("revoked.json",
              fmt::format(R"({{"schema": "cubist.revocations", "schema_version": 1, "serial": {},)"
                          R"( "entries": [{{"sha256": "{}", "reason": "r"}}]}})",
                          serial, std::string(64, digit)));
    by.sign_file(path);
    return path;
  }
  Settings settings(const Signer& signer) const {
    Settings made;
    made.trusted_keys = {signer.public_line()};
    made.state_folder = folder_ / "store/state";
    return made;
  }
  std::string operator/(const std::string& name) const { return folder_ / name; }

 private:
  Scratch folder_;
};

std::string quoted(const Signer& signer) { return '"' + signer.public_line() + '"'; }

Result<std::optional<SignedBy>> check(const Trust& trust, const std::string& file,
                                      bool shipped = false) {
  return trust.check_manifest(bytes_of(kManifest), file, shipped);
}

TEST_CASE("without a key nothing is checked, and the policy speaks of everybody") {
  const Publisher publisher;
  const std::string file = publisher.manifest();
  REQUIRE(write_file_atomically(file + ".minisig", std::string_view("garbage")));
  Settings settings;
  const Warnings warnings;
  CHECK(check(*Trust::open(settings), file));
  CHECK(warnings.text().empty());
  settings.manifest_signatures = Policy::kWarn;
  CHECK(check(*Trust::open(settings), file));
  CHECK_THAT(warnings.text(), Contains("no key is trusted"));
  settings.manifest_signatures = Policy::kRefuse;
  const auto refused = check(*Trust::open(settings), file);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  CHECK(check(*Trust::open(settings), file, true));
}

TEST_CASE("with a key, an unsigned manifest goes by the policy") {
  const Publisher publisher;
  const Signer signer;
  const std::string file = publisher.manifest();
  Settings settings = publisher.settings(signer);
  const Warnings warnings;
  CHECK_FALSE(check(*Trust::open(settings), file)->has_value());
  CHECK_THAT(warnings.text(), Contains("'" + file + "' is not signed"));
  settings.manifest_signatures = Policy::kRefuse;
  CHECK(check(*Trust::open(settings), file).error().code() == StatusCode::kUntrusted);
  CHECK(check(*Trust::open(settings), file, true));
}

TEST_CASE("with a key, a bad signature is an error under every policy, shipped or not") {
  const Publisher publisher;
  const Signer signer;
  const Signer stranger;
  const std::string file = publisher.manifest();
  for (const Policy policy : {Policy::kAllow, Policy::kWarn, Policy::kRefuse}) {
    Settings settings = publisher.settings(signer);
    settings.manifest_signatures = policy;
    const Trust trust = *Trust::open(settings);
    for (const bool shipped : {false, true}) {
      for (const std::string& bad : {std::string("garbage"), std::string(),
                                     stranger.sign(kManifest), signer.sign("other bytes")}) {
        REQUIRE(write_file_atomically(file + ".minisig", bad));
        const auto refused = check(trust, file, shipped);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().code() == StatusCode::kUntrusted);
      }
      signer.sign_file(file, "fine");
      const auto good = check(trust, file, shipped);
      REQUIRE(good);
      CHECK((*good)->trusted_comment == "fine");
    }
  }
}

TEST_CASE("a signature file that cannot be read is an error, not a missing one") {
  const Publisher publisher;
  const Signer signer;
  const std::string file = publisher.manifest();
  Settings settings = publisher.settings(signer);
  settings.manifest_signatures = Policy::kAllow;
  SECTION("a folder") { REQUIRE(::mkdir((file + ".minisig").c_str(), 0700) == 0); }
  SECTION("a FIFO") { REQUIRE(::mkfifo((file + ".minisig").c_str(), 0600) == 0); }
  SECTION("a huge file") {
    REQUIRE(write_file_atomically(file + ".minisig", std::string(1 << 20, 'x')));
  }
  CHECK_FALSE(check(*Trust::open(settings), file));
}

TEST_CASE("keys are lines or .pub files; what is neither is refused with its place") {
  const Publisher publisher;
  const Signer signer;
  Settings settings;
  settings.trusted_keys = {signer.public_path(), signer.public_line()};
  CHECK(Trust::open(settings)->keys().size() == 1);
  settings.trusted_keys = {publisher / "none.pub"};
  CHECK(Trust::open(settings).error().code() == StatusCode::kNotFound);
  settings.trusted_keys = {publisher.write("empty.pub", "")};
  CHECK_THAT(Trust::open(settings).error().message(), Contains("empty.pub"));
  settings.trusted_keys = {signer.secret_file().substr(signer.secret_file().find("\nRW") + 1)};
  settings.trusted_keys[0].pop_back();
  const auto secret = Trust::open(settings);
  REQUIRE_FALSE(secret);
  CHECK_THAT(secret.error().message(),
             Contains("secret key") && !Contains(settings.trusted_keys[0].substr(0, 40)));
  settings.trusted_keys = {"RWnonsense"};
  CHECK_THAT(Trust::open(settings).error().message(), Contains("trusted_keys"));
}

TEST_CASE("an older manifest is refused once a newer one was seen, until it is accepted") {
  const Publisher publisher;
  const Signer signer;
  const Settings settings = publisher.settings(signer);
  REQUIRE(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
  CHECK(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
  CHECK(Trust::open(settings)->check_facts({"other", 1, ""}, "m.json", true));
  for (const std::int64_t older : {6, 1, 0}) {
    const Status refused = Trust::open(settings)->check_facts({"m", older, ""}, "m.json", true);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kUntrusted);
    CHECK_THAT(refused.error().message(),
               Contains("7 was seen") && Contains("'m.json'") && Contains("--accept-older-serial"));
  }
  // An unsigned manifest's serial is anybody's claim: it is neither held against it nor noted.
  CHECK(Trust::open(settings)->check_facts({"m", 6, ""}, "m.json", false));
  CHECK(Trust::open(settings)->check_facts({"m", 99, ""}, "m.json", false));
  const Warnings warnings;
  Settings accepting = settings;
  accepting.accept_older_serial = true;
  CHECK(Trust::open(accepting)->check_facts({"m", 6, ""}, "m.json", true));
  CHECK_THAT(warnings.text(), Contains("older than 7"));
  CHECK_FALSE(Trust::open(settings)->check_facts({"m", 6, ""}, "m.json", true));
  CHECK(Trust::open(settings)->check_facts({"m", 8, ""}, "m.json", true));
  CHECK_FALSE(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
}

TEST_CASE("another manifest of a serial that was seen is refused") {
  const Publisher publisher;
  const Signer signer;
  Settings settings = publisher.settings(signer);
  const Sha256Digest other = *Sha256Digest::parse(std::string(64, 'a'));
  REQUIRE(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
  const Status refused = Trust::open(settings)->check_facts({"m", 7, "", other}, "n.json", true);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  CHECK_THAT(refused.error().message(), Contains("'n.json' has serial 7") && Contains(other.hex()));
  // Without a serial nothing is said about which is newer.
  CHECK(Trust::open(settings)->check_facts({"o", 0, ""}, "o.json", true));
  CHECK(Trust::open(settings)->check_facts({"o", 0, "", other}, "o.json", true));
  settings.accept_older_serial = true;
  CHECK(Trust::open(settings)->check_facts({"m", 7, "", other}, "n.json", true));
  settings.accept_older_serial = false;
  CHECK(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
}

TEST_CASE("what is compared is noted only when somebody says so") {
  const Publisher publisher;
  const Signer signer;
  const Settings settings = publisher.settings(signer);
  Trust trust = *Trust::open(settings);
  const auto fresh = trust.compare_facts({"m", 7, ""}, "m.json", true);
  REQUIRE(fresh);
  CHECK(Trust::open(settings)->seen().serial_of("manifest m") == 0);
  trust.note(*fresh);
  CHECK(Trust::open(settings)->seen().serial_of("manifest m") == 7);
}

TEST_CASE("a fresh store has seen nothing, and a store that cannot be written warns and works") {
  const Publisher publisher;
  const Signer signer;
  Settings settings = publisher.settings(signer);
  REQUIRE(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
  settings.state_folder = publisher / "another/state";
  CHECK(Trust::open(settings)->check_facts({"m", 6, ""}, "m.json", true));
  settings.state_folder = publisher.write("file", "x") + "/state";
  const Warnings warnings;
  CHECK(Trust::open(settings));
  settings.state_folder = "/proc/state";
  CHECK(Trust::open(settings)->check_facts({"m", 6, ""}, "m.json", true));
  CHECK_THAT(warnings.text(), Contains("cannot be noted"));
}

TEST_CASE("what notes no serials still refuses older ones") {
  const Publisher publisher;
  const Signer signer;
  Settings settings = publisher.settings(signer);
  settings.notes_serials = false;
  REQUIRE(Trust::open(settings)->check_facts({"m", 7, ""}, "m.json", true));
  CHECK_FALSE(read_text_file(publisher / "store/state/seen-0.json", 1000));
  Trust trust = *Trust::open(settings);
  REQUIRE(trust.check_facts({"m", 7, ""}, "m.json", true));
  CHECK_FALSE(trust.check_facts({"m", 6, ""}, "m.json", true));
}

TEST_CASE("a manifest that has expired is used with a warning") {
  Trust trust = *Trust::open({});
  const Warnings warnings;
  CHECK(trust.check_facts({"m", 1, "2999-12-31"}, "m.json", false));
  CHECK(warnings.text().empty());
  CHECK(trust.check_facts({"m", 1, "2001-12-31"}, "m.json", false));
  CHECK_THAT(warnings.text(), Contains("'m.json' expired on 2001-12-31"));
}

TEST_CASE("keys follow one another by signed statements") {
  const Publisher publisher;
  const Signer first;
  const Signer second;
  const Signer third;
  Settings settings = publisher.settings(first);
  settings.key_statements = {publisher.keys(second, 3, quoted(third), quoted(second)),
                             publisher.keys(first, 2, quoted(second), quoted(first))};
  const auto trust = Trust::open(settings);
  REQUIRE(trust);
  REQUIRE(trust->keys().size() == 1);
  CHECK(trust->keys()[0].text() == third.public_line());
  const std::string file = publisher.manifest();
  third.sign_file(file);
  CHECK(check(*trust, file));
  first.sign_file(file);
  CHECK_FALSE(check(*trust, file));
  // The next run knows that the keys of these very statements are retired since, and follows them.
  const auto again = Trust::open(settings);
  INFO((again ? "" : again.error().message()));
  REQUIRE(again);
  CHECK(again->keys() == trust->keys());
  // Another statement of a serial that was seen, by a key that is retired, is none of them.
  const Signer thief;
  publisher.keys(first, 2, quoted(thief), quoted(first));
  const auto forged = Trust::open(settings);
  REQUIRE_FALSE(forged);
  CHECK(forged.error().code() == StatusCode::kUntrusted);
}

TEST_CASE("a retired key stays retired, whatever it signs afterwards") {
  const Publisher publisher;
  const Signer first;
  const Signer second;
  const Signer thief;
  Settings settings = publisher.settings(first);
  settings.trusted_keys.push_back(second.public_line());
  settings.key_statements = {publisher.keys(second, 2, "", quoted(first))};
  REQUIRE(Trust::open(settings));
  // The one statement is replaced by one that the lost key signed.
  settings.key_statements = {publisher.keys(first, 9, quoted(thief), quoted(second))};
  const auto refused = Trust::open(settings);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  // Without any statement the lost key is still not trusted, nor is the check switched off.
  settings.key_statements = {};
  CHECK(Trust::open(settings)->keys().size() == 1);
  settings.trusted_keys = {first.public_line()};
  const auto none = Trust::open(settings);
  REQUIRE(none);
  CHECK(none->keys().empty());
  CHECK(none->checks_signatures());
  const std::string file = publisher.manifest();
  first.sign_file(file);
  CHECK_FALSE(check(*none, file));
}

TEST_CASE("statements that must not be applied are refused") {
  const Publisher publisher;
  const Signer signer;
  const Signer other;
  Settings settings = publisher.settings(signer);
  SECTION("by a key that is not trusted") {
    settings.key_statements = {publisher.keys(other, 2, quoted(other), "")};
    CHECK(Trust::open(settings).error().code() == StatusCode::kUntrusted);
  }
  SECTION("not signed") {
    settings.key_statements = {publisher.keys(signer, 2, quoted(other), "")};
    REQUIRE(::unlink((publisher / "keys-2.json.minisig").c_str()) == 0);
    CHECK_THAT(Trust::open(settings).error().message(), Contains("has no signature"));
  }
  SECTION("leaving no key") {
    settings.key_statements = {publisher.keys(signer, 2, "", quoted(signer))};
    CHECK_THAT(Trust::open(settings).error().message(), Contains("leaves no key"));
  }
  SECTION("of one serial") {
    settings.key_statements = {publisher.keys(signer, 2, quoted(other), "")};
    settings.key_statements.push_back(
        publisher.write("again.json", *read_text_file(settings.key_statements[0], 10000)));
    CHECK_THAT(Trust::open(settings).error().message(), Contains("both have serial 2"));
  }
  SECTION("older than those applied before") {
    settings.key_statements = {publisher.keys(signer, 5, quoted(other), "")};
    REQUIRE(Trust::open(settings));
    settings.key_statements = {publisher.keys(signer, 4, quoted(other), "")};
    CHECK_THAT(Trust::open(settings).error().message(), Contains("5 was seen before"));
  }
  SECTION("missing") {
    settings.key_statements = {publisher / "none.json"};
    CHECK(Trust::open(settings).error().code() == StatusCode::kNotFound);
  }
  SECTION("without a trusted key") {
    settings.key_statements = {publisher.keys(signer, 2, quoted(other), "")};
    settings.trusted_keys.clear();
    CHECK_THAT(Trust::open(settings).error().message(), Contains("trusted_keys"));
  }
}

TEST_CASE("a revocation list that cannot be trusted is an error, never an empty list") {
  const Publisher publisher;
  const Signer signer;
  const Signer other;
  Settings settings = publisher.settings(signer);
  settings.revocations = {publisher.list(signer, 4)};
  const auto good = Trust::open(settings);
  REQUIRE(good);
  CHECK(good->revoked().contains(*Sha256Digest::parse(std::string(64, 'a'))));
  SECTION("missing") { REQUIRE(::unlink(settings.revocations[0].c_str()) == 0); }
  SECTION("its signature is missing") {
    REQUIRE(::unlink((settings.revocations[0] + ".minisig").c_str()) == 0);
  }
  SECTION("altered") {
    std::string text = *read_text_file(settings.revocations[0], 10000);
    text.replace(text.find("aaaa"), 4, "bbbb");
    REQUIRE(write_file_atomically(settings.revocations[0], text));
  }
  SECTION("by a key that is not trusted") { publisher.list(other, 5); }
  SECTION("older than one seen") { publisher.list(signer, 3); }
  SECTION("signed, and no list") {
    publisher.write("revoked.json", "{}");
    signer.sign_file(settings.revocations[0]);
  }
  SECTION("empty") {
    publisher.write("revoked.json", "");
    signer.sign_file(settings.revocations[0]);
  }
  SECTION("no key is trusted") { settings.trusted_keys.clear(); }
  CHECK_FALSE(Trust::open(settings));
}

TEST_CASE("settings come from the environment") {
  const test::Environment environment({{"CUBIST_TRUSTED_KEYS", " RWa  RWb\n"},
                                       {"CUBIST_MANIFEST_SIGNATURES", "refuse"},
                                       {"CUBIST_KEY_STATEMENTS", "/a.json:/b.json"},
                                       {"CUBIST_REVOCATIONS", ":/r.json:"},
                                       {"CUBIST_FOREIGN_STORE", std::nullopt}});
  const auto settings = settings_from_environment();
  REQUIRE(settings);
  CHECK(settings->trusted_keys == std::vector<std::string>{"RWa", "RWb"});
  CHECK(settings->manifest_signatures == Policy::kRefuse);
  CHECK(settings->key_statements == std::vector<std::string>{"/a.json", "/b.json"});
  CHECK(settings->revocations == std::vector<std::string>{"/r.json"});
  CHECK(settings->foreign_store == Policy::kWarn);
  CHECK(settings->origins.trusted_keys == "CUBIST_TRUSTED_KEYS");
  CHECK(settings->origins.foreign_store == "foreign_store");
  const test::Environment wrong(test::Environment::Values{{"CUBIST_FOREIGN_STORE", "maybe"}});
  CHECK_THAT(settings_from_environment().error().message(),
             Contains("CUBIST_FOREIGN_STORE is 'maybe'"));
}

}  // namespace
}  // namespace cubist::trust
