#include "trust/signature.h"

#include "base/base64.h"
#include "support/catch.h"
#include "support/minisign.h"

namespace cubist::trust {
namespace {

using Catch::Matchers::Contains;
using test::Signer;

constexpr std::string_view kManifest = "{\"schema\": \"cubist.manifest\"}\n";

std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Result<SignedBy> check(std::string_view text, std::string_view signature,
                       std::initializer_list<const Signer*> trusted) {
  std::vector<PublicKey> keys;
  for (const Signer* signer : trusted) {
    keys.push_back(*parse_public_key(signer->public_line(), "a test"));
  }
  return check_signed(bytes_of(text), signature, "m.json", keys);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

std::string joined_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

/// The line's bytes with bit `bit` of byte `at` turned over.
std::string turned(const std::string& line, std::size_t at, int bit = 0) {
  std::vector<std::uint8_t> bytes = *parse_base64(line);
  bytes.at(at) = static_cast<std::uint8_t>(bytes.at(at) ^ 1 << bit);
  return to_base64(bytes);
}

TEST_CASE("what minisign signs is good, and says by whom and with which comment") {
  const Signer signer;
  const Signer other;
  const std::string signature = signer.sign(kManifest, "release 7, 2026-11-30");
  const auto good = check(kManifest, signature, {&other, &signer});
  REQUIRE(good);
  CHECK(good->trusted_comment == "release 7, 2026-11-30");
  CHECK(good->key.text() == signer.public_line());
  // minisign shows the key's number in the comment of its .pub file.
  std::string number = good->key.id.text();
  number.erase(0, number.find_first_not_of('0'));  // minisign writes none in front
  CHECK_THAT(signer.public_file(), Contains("minisign public key " + number + "\n"));
  CHECK(check("", signer.sign(""), {&signer}));
  const std::string big(3 << 20, 'x');
  CHECK(check(big, signer.sign(big), {&signer}));
}

TEST_CASE("a public key is read from its line, with or without an end, and from its file") {
  const Signer signer;
  const std::string line = signer.public_line();
  const auto key = parse_public_key(line, "a test");
  REQUIRE(key);
  CHECK(*parse_public_key(line + "\n", "a test") == *key);
  CHECK(*parse_public_key(signer.public_file(), "k.pub") == *key);
  CHECK(*parse_public_key("untrusted comment: \r\n" + line + "\r\n", "k.pub") == *key);
}

TEST_CASE("what is no public key is refused, and a secret key is named") {
  const Signer signer;
  const std::string line = signer.public_line();
  const std::string file = signer.public_file();
  for (const std::string& bad :
       {std::string(), std::string("\n"), line.substr(1), line + "A", line + "AAAA", " " + line,
        line + "\n" + line, file + line, "trusted comment: \n" + line, turned(line, 0),
        turned(line, 1), std::string(56, '='), std::string(1 << 20, '\n'), file + "\n",
        std::string("{}"), line + std::string(1, '\0')}) {
    CAPTURE(bad.substr(0, 100));
    const auto refused = parse_public_key(bad, "trusted_keys/0");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(refused.error().message(), Contains("trusted_keys/0"));
  }
  const auto secret = parse_public_key(signer.secret_file(), "k");
  REQUIRE_FALSE(secret);
  CHECK_THAT(secret.error().message(), Contains("secret key"));
  const std::string secret_line = lines_of(signer.secret_file())[1];
  CHECK_THAT(secret.error().message(), !Contains(secret_line.substr(0, 20)));
  CHECK_THAT(parse_public_key(secret_line, "k").error().message(), Contains("secret key"));
}

TEST_CASE("bytes that are not those signed are refused") {
  const Signer signer;
  const std::string signature = signer.sign(kManifest);
  std::string altered(kManifest);
  for (std::size_t at = 0; at < altered.size(); ++at) {
    altered[at] ^= 1;
    const auto refused = check(altered, signature, {&signer});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kUntrusted);
    CHECK_THAT(refused.error().message(), Contains("'m.json' is not what key"));
    altered[at] ^= 1;
  }
  CHECK_FALSE(check(altered + "\n", signature, {&signer}));
  CHECK_FALSE(check(altered.substr(1), signature, {&signer}));
  CHECK(check(altered, signature, {&signer}));
}

TEST_CASE("another key's signature is refused, also under the trusted key's number") {
  const Signer signer;
  const Signer other;
  const std::string signature = other.sign(kManifest);
  const auto refused = check(kManifest, signature, {&signer});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  CHECK_THAT(refused.error().message(),
             Contains(parse_public_key(other.public_line(), "")->id.text()) &&
                 Contains(parse_public_key(signer.public_line(), "")->id.text() + " is trusted") &&
                 Contains("trusted_keys"));
  CHECK_THAT(check(kManifest, signature, {}).error().message(), Contains("none is trusted"));

  std::vector<std::string> lines = lines_of(signature);
  std::vector<std::uint8_t> bytes = *parse_base64(lines[1]);
  const PublicKey key = *parse_public_key(signer.public_line(), "");
  std::copy(key.id.bytes.begin(), key.id.bytes.end(), bytes.begin() + 2);
  lines[1] = to_base64(bytes);
  CHECK_THAT(check(kManifest, joined_lines(lines), {&signer}).error().message(),
             Contains("is not what key " + key.id.text() + " signed"));
}

TEST_CASE("two trusted keys of one number: the signature may be of either") {
  const Signer signer;
  const Signer other;
  PublicKey impostor = *parse_public_key(other.public_line(), "");
  const PublicKey key = *parse_public_key(signer.public_line(), "");
  impostor.id = key.id;
  const std::vector<PublicKey> both = {impostor, key};
  const auto good = check_signed(bytes_of(kManifest), signer.sign(kManifest), "m.json", both);
  REQUIRE(good);
  CHECK(good->key == key);
}

TEST_CASE("an altered trusted comment is refused") {
  const Signer signer;
  const std::string signature = signer.sign(kManifest, "serial 7");
  std::vector<std::string> lines = lines_of(signature);
  lines[2] = "trusted comment: serial 8";
  const auto refused = check(kManifest, joined_lines(lines), {&signer});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code() == StatusCode::kUntrusted);
  CHECK_THAT(refused.error().message(), Contains("comment was altered"));
  lines[2] = "trusted comment: ";
  CHECK_FALSE(check(kManifest, joined_lines(lines), {&signer}));
  // A good comment of the same signer, over another signature.
  const std::string second = signer.sign("else", "serial 8");
  lines[2] = lines_of(second)[2];
  lines[3] = lines_of(second)[3];
  CHECK_FALSE(check(kManifest, joined_lines(lines), {&signer}));
}

TEST_CASE("the untrusted comment may be anything, as its name says") {
  const Signer signer;
  std::vector<std::string> lines = lines_of(signer.sign(kManifest));
  lines[0] = "untrusted comment: else";
  CHECK(check(kManifest, joined_lines(lines), {&signer}));
  // A file that came through a system with other line ends.
  for (std::string& line : lines) line += '\r';
  CHECK(check(kManifest, joined_lines(lines), {&signer}));
}

TEST_CASE("a signature cut anywhere is refused") {
  const Signer signer;
  const std::string signature = signer.sign(kManifest);
  for (std::size_t size = 0; size + 1 < signature.size(); ++size) {
    const auto refused = check(kManifest, signature.substr(0, size), {&signer});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kUntrusted);
  }
  CHECK(check(kManifest, signature.substr(0, signature.size() - 1), {&signer}));
}

TEST_CASE("any bit of a signature turned over is refused") {
  const Signer signer;
  const std::vector<std::string> lines = lines_of(signer.sign(kManifest));
  for (const std::size_t line : {std::size_t{1}, std::size_t{3}}) {
    const std::size_t size = parse_base64(lines[line])->size();
    for (std::size_t at = 0; at < size; ++at) {
      std::vector<std::string> altered = lines;
      altered[line] = turned(lines[line], at, static_cast<int>(at % 8));
      CHECK_FALSE(check(kManifest, joined_lines(altered), {&signer}));
    }
  }
}

TEST_CASE("a signature's second form is refused") {
  // Adding the group's order to S gives another number with the same meaning; RFC 8032 wants S
  // below the order, so that a signature has one form.
  const Signer signer;
  std::vector<std::string> lines = lines_of(signer.sign(kManifest));
  constexpr std::uint8_t kOrder[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,
                                       0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
                                       0,    0,    0,    0,    0,    0,    0,    0,
                                       0,    0,    0,    0,    0,    0,    0,    0x10};
  std::vector<std::uint8_t> bytes = *parse_base64(lines[1]);
  unsigned carry = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    carry += bytes[42 + i] + kOrder[i];
    bytes[42 + i] = static_cast<std::uint8_t>(carry);
    carry >>= 8;
  }
  REQUIRE(carry == 0);
  lines[1] = to_base64(bytes);
  CHECK_FALSE(check(kManifest, joined_lines(lines), {&signer}));
}

TEST_CASE("a legacy signature and other algorithms are refused by name") {
  const Signer signer;
  const std::string legacy = signer.sign(kManifest, "old", "-l");
  CHECK_THAT(check(kManifest, legacy, {&signer}).error().message(),
             Contains("legacy") && Contains("without minisign's option -l"));
  // A legacy signature of the digest is no signature of the file.
  std::vector<std::string> lines = lines_of(legacy);
  lines[1] = turned(lines[1], 1, 5);  // "Ed" to "ED"
  CHECK_FALSE(check(kManifest, joined_lines(lines), {&signer}));
  lines = lines_of(signer.sign(kManifest));
  lines[1] = turned(lines[1], 0);
  CHECK_THAT(check(kManifest, joined_lines(lines), {&signer}).error().message(),
             Contains("algorithm 'DD', expected 'ED'"));
}

TEST_CASE("garbage in place of a signature is refused, and shown without control characters") {
  const Signer signer;
  const std::string good = signer.sign(kManifest);
  const std::vector<std::string> lines = lines_of(good);
  const std::string long_comment(9000, 'x');
  for (const std::string& bad : {
           std::string(),
           std::string(4, '\n'),
           std::string(1 << 20, '\n'),
           std::string(1 << 20, 'A'),
           std::string("\0\0\0\0", 4),
           good + "x\n",
           good + "\n",
           "\n" + good,
           good + good,
           signer.public_file(),
           joined_lines({lines[0], lines[1], lines[2]}),
           joined_lines({lines[2], lines[1], lines[0], lines[3]}),
           joined_lines({lines[0], lines[3], lines[2], lines[1]}),
           joined_lines({lines[0], lines[1] + " ", lines[2], lines[3]}),
           joined_lines({lines[0], lines[1], "trusted comment: \x1b[2J", lines[3]}),
           joined_lines({lines[0], lines[1], "trusted comment: " + long_comment, lines[3]}),
           joined_lines({"untrusted comment: " + long_comment, lines[1], lines[2], lines[3]}),
           joined_lines({"\x1b]0;owned\x07", lines[1], lines[2], lines[3]}),
       }) {
    CAPTURE(bad.substr(0, 200));
    const auto refused = check(kManifest, bad, {&signer});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code() == StatusCode::kUntrusted);
    CHECK_THAT(refused.error().message(), Contains("m.json.minisig"));
    CHECK(refused.error().message().find('\x1b') == std::string::npos);
    CHECK(refused.error().message().size() < 600);
  }
}

}  // namespace
}  // namespace cubist::trust
