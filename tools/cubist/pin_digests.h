#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist::tools {

/// What --pin keeps: every SHA-256 in these files or manifests that are found by name.
/// errors  kNotFound, kIo; kInvalidArgument: a file without a SHA-256
Result<std::unordered_set<Sha256Digest>> read_pins(const std::vector<std::string>& names);

}  // namespace cubist::tools
