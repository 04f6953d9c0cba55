#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "trust/signature.h"

namespace cubist::trust {

/// The text of `file`.minisig, or nothing where there is no such file.
/// errors  kIo, kIntegrity: it is there and cannot be read, or is larger than any signature
Result<std::optional<std::string>> read_signature_of(const std::string& file);

/// The text of a file that one of the keys signed.
/// errors  kNotFound, kIo, kIntegrity; kUntrusted: no signature, or those of check_signed
struct SignedText {
  std::string text;
  SignedBy by;
};
Result<SignedText> read_signed_file(const std::string& file, std::uint64_t max_bytes,
                                    std::span<const PublicKey> keys);

}  // namespace cubist::trust
