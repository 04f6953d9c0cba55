#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cubist {

/// A raw deflate stream (RFC 1951) of `bytes`. The same bytes give the same stream with the same
/// zlib; another release of zlib may pack otherwise.
std::vector<std::uint8_t> deflate_bytes(std::span<const std::uint8_t> bytes);

/// The CRC-32 that zip records of a member.
std::uint32_t crc32_of(std::span<const std::uint8_t> bytes);

}  // namespace cubist
