#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/result.h"

namespace cubist::trust {

/// BLAKE2b with 64 bytes of digest and no key (RFC 7693).
/// errors  kInternal: OpenSSL was built without it
Result<std::array<std::uint8_t, 64>> blake2b_512(std::span<const std::uint8_t> bytes);

/// Whether `signature` is the public key's over `message` (RFC 8032, pure Ed25519).
/// errors  kInternal: OpenSSL was built without it
Result<bool> ed25519_good(std::span<const std::uint8_t, 32> public_key,
                          std::span<const std::uint8_t> message,
                          std::span<const std::uint8_t, 64> signature);

}  // namespace cubist::trust
