#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist::trust {

/// Which key pair a signature is of: eight bytes that minisign draws when it makes the pair. A
/// hint, never a proof: whoever wants to can make a key with the same number.
struct KeyId {
  std::array<std::uint8_t, 8> bytes{};

  /// As minisign shows it: "FD90A77A2D102BBA", the bytes from last to first.
  std::string text() const;
  auto operator<=>(const KeyId&) const = default;
};

/// An Ed25519 public key of minisign.
struct PublicKey {
  KeyId id;
  std::array<std::uint8_t, 32> bytes{};

  /// The one line of a .pub file that counts: "RWS6KxAteqeQ/Qq4AZ1y...".
  std::string text() const;
  auto operator<=>(const PublicKey&) const = default;
};

/// Reads a public key: that line alone, or a whole .pub file.
///
/// name    what a message calls the text: a file, or a key of the configuration
/// errors  kInvalidArgument: something else; it says so if that is a secret key
Result<PublicKey> parse_public_key(std::string_view text, std::string_view name);

/// A .minisig file, read but not yet held against a key.
struct Signature {
  KeyId key;
  std::array<std::uint8_t, 64> of_bytes{};    ///< over the BLAKE2b-512 of the file
  std::string trusted_comment;                ///< without "trusted comment: "
  std::array<std::uint8_t, 64> of_comment{};  ///< over `of_bytes` and the trusted comment
};

/// Reads what minisign 0.8 and newer write. Signatures over the file itself instead of its
/// BLAKE2b-512 (minisign's option -l, the default before 0.10) are refused: one form is enough,
/// and that one lets big files be hashed as they come.
///
/// errors  kUntrusted: cut short, garbage, another algorithm, a legacy signature
Result<Signature> parse_signature(std::string_view text, std::string_view name);

/// Who vouches for some bytes, after the signature was found good.
struct SignedBy {
  PublicKey key;
  std::string trusted_comment;  ///< no control characters; at most 8192 bytes
};

/// Whether one of the trusted keys signed exactly these bytes, and the trusted comment with them.
///
/// bytes           of the file, as they lie: no line end is changed
/// signature_text  of the .minisig file
/// file            what a message calls the signed file; its signature is `file`.minisig
/// trusted         may be empty: then nothing is signed by a trusted key
/// errors          those of parse_signature; kUntrusted: by none of these keys, other bytes,
///                 another trusted comment; kInternal: OpenSSL has no Ed25519 or BLAKE2b-512
///
/// No state; safe from any thread.
Result<SignedBy> check_signed(std::span<const std::uint8_t> bytes, std::string_view signature_text,
                              std::string_view file, std::span<const PublicKey> trusted);

}  // namespace cubist::trust
