#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "trust/signature.h"

namespace cubist::trust {

/// What a publisher says about its keys: which are new, which are to be trusted no longer. Signed
/// by a key that is trusted already.
struct KeyStatement {
  std::string file;
  std::int64_t serial = 0;  ///< later statements have higher ones
  Sha256Digest sha256;      ///< of its text; set by whoever read that
  std::vector<PublicKey> add;
  std::vector<PublicKey> retire;
};

/// errors  kInvalidArgument with file, place and what is wrong
Result<KeyStatement> parse_key_statement(std::string_view text, std::string_view file_name);

}  // namespace cubist::trust
