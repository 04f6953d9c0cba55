#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cubist::oci {

/// What a token server gives for credentials: good at one registry, for one purpose, for a while.
struct Token {
  std::string text;
  std::chrono::seconds lifetime{60};  ///< from when it was given
};

/// { "token" or "access_token": "...", "expires_in": seconds }
///
/// server  what messages call it
/// errors  kNetwork: not that; without what stands there
Result<Token> parse_token_answer(std::string_view text, std::string_view server);

/// Why a registry may refuse the token, as far as its own dates tell (RFC 7519: exp, nbf):
/// "it expired at 2026-01-02 03:04:05 UTC". Empty for tokens without dates and for good ones.
///
/// now  seconds since 1970
std::string describe_validity(std::string_view token, std::int64_t now);

}  // namespace cubist::oci
