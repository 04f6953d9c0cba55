#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist {

/// One line of a checksums.txt: "64 hexadecimal digits, white space, a path".
struct ChecksumLine {
  Sha256Digest sha256;
  std::string_view path;  ///< points into the text
};

/// The lines of a checksums.txt as sha256sum writes it, sorted by path. Empty lines are skipped.
///
/// file    what messages call it
/// errors  kManifestInvalid with file and line: no digest, no path, a path that leaves its folder,
/// a
///         path named twice
Result<std::vector<ChecksumLine>> parse_checksums(std::string_view text, std::string_view file);

}  // namespace cubist
