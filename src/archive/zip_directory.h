#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "archive/zip.h"
#include "base/result.h"

namespace cubist {

/// Parses a whole central directory of `num_entries` entries that begins at `directory_offset` of
/// the file `name`. Checks everything that can be checked without the local headers, folders
/// included, and leaves the folders out.
Result<std::vector<ZipMember>> parse_zip_directory(std::span<const std::uint8_t> directory,
                                                   std::uint64_t num_entries,
                                                   std::uint64_t directory_offset,
                                                   const std::string& name);

}  // namespace cubist
