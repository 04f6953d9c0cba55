#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "archive/zip.h"
#include "base/result.h"

namespace cubist {

/// The compressed bytes of `member` inside `extent`, the file's bytes from its local header on.
/// errors  kIntegrity: no local header there, one that says something else than the directory, or
///         data that runs past `extent`
Result<std::span<const std::uint8_t>> member_data(std::span<const std::uint8_t> extent,
                                                  const ZipMember& member, const std::string& zip);

}  // namespace cubist
