#include "trust/signature.h"

#include <algorithm>
#include <optional>

#include "base/base64.h"
#include "base/hex.h"
#include "document/json_text.h"
#include "trust/ed25519.h"

// A .pub file                                   the second line's bytes
//   untrusted comment: TEXT                       "Ed"  key number (8)  public key (32)
//   BASE64
//
// A .minisig file                               the second line's bytes
//   untrusted comment: TEXT                       "ED"  key number (8)  signature (64) of the
//   file's BASE64                                              BLAKE2b-512 trusted comment: TEXT
//   the fourth line's bytes BASE64                                        signature (64) of the
//   second line's signature
//                                                 followed by the trusted comment's TEXT

namespace cubist::trust {
namespace {

constexpr std::string_view kUntrustedComment = "untrusted comment: ";
constexpr std::string_view kTrustedComment = "trusted comment: ";
constexpr std::size_t kMaxUntrustedComment = 1024;  // both limits are minisign's own
constexpr std::size_t kMaxTrustedComment = 8192;
constexpr std::size_t kMaxLines = 4;

/// The lines without their ends, which may be LF or CR LF; nothing for more than kMaxLines.
std::optional<std::vector<std::string_view>> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    if (lines.size() == kMaxLines) return std::nullopt;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool has_control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char character) {
    const auto byte = static_cast<unsigned char>(character);
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
  });
}

/// The text behind `prefix`; nothing if the line begins otherwise or is no such comment.
std::optional<std::string_view> comment_of(std::string_view line, std::string_view prefix,
                                           std::size_t most) {
  if (!line.starts_with(prefix)) return std::nullopt;
  line.remove_prefix(prefix.size());
  if (line.size() > most || has_control_character(line)) return std::nullopt;
  return line;
}

template <std::size_t N>
void copy_from(std::span<const std::uint8_t> bytes, std::size_t at,
               std::array<std::uint8_t, N>& out) {
  std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), N, out.begin());
}

std::string_view algorithm_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), 2};
}

std::string ids_of(std::span<const PublicKey> keys) {
  std::vector<std::string> ids;
  for (const PublicKey& key : keys) ids.push_back(key.id.text());
  return ids.empty() ? "none is" : joined(ids) + (ids.size() == 1 ? " is" : " are");
}

}  // namespace

std::string KeyId::text() const {
  std::array<std::uint8_t, 8> reversed = bytes;
  std::reverse(reversed.begin(), reversed.end());
  std::string hex = to_hex(reversed);
  for (char& digit : hex) {
    if (digit >= 'a') digit = static_cast<char>(digit - 'a' + 'A');
  }
  return hex;
}

std::string PublicKey::text() const {
  std::vector<std::uint8_t> all = {'E', 'd'};
  all.insert(all.end(), id.bytes.begin(), id.bytes.end());
  all.insert(all.end(), bytes.begin(), bytes.end());
  return to_base64(all);
}

Result<PublicKey> parse_public_key(std::string_view text, std::string_view name) {
  constexpr std::size_t kKeyBytes = 2 + 8 + 32;
  constexpr std::size_t kSecretKeyBytes = 158;
  const auto lines = lines_of(text);
  const bool file = lines && lines->size() == 2 &&
                    comment_of((*lines)[0], kUntrustedComment, kMaxUntrustedComment);
  if (!lines || (!file && lines->size() != 1)) {
    return fail(StatusCode::kInvalidArgument,
                "{}: not a minisign public key; expected its line of 56 characters (RW...), or the "
                "two lines of a .pub file",
                name);
  }
  const auto bytes = parse_base64(lines->back());
  if (bytes && bytes->size() == kSecretKeyBytes) {
    return fail(StatusCode::kInvalidArgument,
                "{}: this is a secret key; give the public one (minisign -R writes it anew), and "
                "keep this one away from the machines that verify",
                name);
  }
  if (!bytes || bytes->size() != kKeyBytes || algorithm_of(*bytes) != "Ed") {
    return fail(StatusCode::kInvalidArgument,
                "{}: {} is no minisign public key of 56 characters (RW...)", name,
                in_quotes(lines->back()));
  }
  PublicKey key;
  copy_from(*bytes, 2, key.id.bytes);
  copy_from(*bytes, 10, key.bytes);
  return key;
}

Result<Signature> parse_signature(std::string_view text, std::string_view name) {
  constexpr std::size_t kSignatureBytes = 2 + 8 + 64;
  const auto lines = lines_of(text);
  if (!lines || lines->size() != 4) {
    return fail(StatusCode::kUntrusted,
                "'{}': {} lines, where a minisign signature has 4; it was cut short or is another "
                "file",
                name, lines ? std::to_string(lines->size()) : "more than 4");
  }
  const auto comment = comment_of((*lines)[2], kTrustedComment, kMaxTrustedComment);
  if (!comment_of((*lines)[0], kUntrustedComment, kMaxUntrustedComment) || !comment) {
    return fail(StatusCode::kUntrusted,
                "'{}': the lines 1 and 3 of a minisign signature are '{}...' and '{}...'; found {} "
                "and {}",
                name, kUntrustedComment, kTrustedComment, in_quotes((*lines)[0]),
                in_quotes((*lines)[2]));
  }
  const auto bytes = parse_base64((*lines)[1]);
  if (!bytes || bytes->size() != kSignatureBytes) {
    return fail(StatusCode::kUntrusted,
                "'{}': line 2 is no base64 text of {} bytes; it was cut short or altered", name,
                kSignatureBytes);
  }
  if (algorithm_of(*bytes) == "Ed") {
    return fail(
        StatusCode::kUntrusted,
        "'{}': a legacy signature, over the file itself; expected one over its BLAKE2b-512: "
        "sign again without minisign's option -l",
        name);
  }
  if (algorithm_of(*bytes) != "ED") {
    return fail(StatusCode::kUntrusted,
                "'{}': algorithm {}, expected 'ED' (Ed25519 over BLAKE2b-512)", name,
                in_quotes(algorithm_of(*bytes)));
  }
  Signature signature;
  copy_from(*bytes, 2, signature.key.bytes);
  copy_from(*bytes, 10, signature.of_bytes);
  signature.trusted_comment = *comment;
  const auto global = parse_base64((*lines)[3]);
  if (!global || global->size() != signature.of_comment.size()) {
    return fail(StatusCode::kUntrusted,
                "'{}': line 4 is no base64 text of {} bytes; it was cut short or altered", name,
                signature.of_comment.size());
  }
  copy_from(*global, 0, signature.of_comment);
  return signature;
}

Result<SignedBy> check_signed(std::span<const std::uint8_t> bytes, std::string_view signature_text,
                              std::string_view file, std::span<const PublicKey> trusted) {
  CUBIST_ASSIGN_OR_RETURN(const Signature signature,
                          parse_signature(signature_text, fmt::format("{}.minisig", file)));
  CUBIST_ASSIGN_OR_RETURN(const auto digest, blake2b_512(bytes));
  std::vector<std::uint8_t> with_comment(signature.of_bytes.begin(), signature.of_bytes.end());
  with_comment.insert(with_comment.end(), signature.trusted_comment.begin(),
                      signature.trusted_comment.end());
  bool known = false;
  for (const PublicKey& key : trusted) {
    if (key.id != signature.key) continue;
    known = true;
    CUBIST_ASSIGN_OR_RETURN(const bool good, ed25519_good(key.bytes, digest, signature.of_bytes));
    if (!good) continue;
    CUBIST_ASSIGN_OR_RETURN(const bool comment_good,
                            ed25519_good(key.bytes, with_comment, signature.of_comment));
    if (comment_good) return SignedBy{key, signature.trusted_comment};
    return fail(StatusCode::kUntrusted,
                "'{}.minisig': key {} signed the file, but not with the trusted comment {}: the "
                "comment was altered; get the signature again",
                file, key.id.text(), in_quotes(signature.trusted_comment));
  }
  if (!known) {
    return fail(StatusCode::kUntrusted,
                "'{}' is signed by key {}, and {} trusted here; if that key is its publisher's, "
                "add the public key to trusted_keys",
                file, signature.key.text(), ids_of(trusted));
  }
  return fail(StatusCode::kUntrusted,
              "'{}' is not what key {} signed: the file or its signature was altered, or they are "
              "of two versions; get both again",
              file, signature.key.text());
}

}  // namespace cubist::trust
