#pragma once

#include <cstdint>
#include <span>

namespace cubist {

/// A checksum of many gigabytes a second, for files of this program's own that nobody vouches for
/// by a digest: it finds what rots, tears or is cut off. No protection from anyone who means it.
std::uint64_t checksum64(std::span<const std::uint8_t> bytes);

}  // namespace cubist
