#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace cubist {

enum class InflateOutcome {
  kOk,
  kBroken,      ///< not a deflate stream, or one that goes wrong on the way
  kTooShort,    ///< the stream ends before `out` is full
  kTooLong,     ///< the stream goes on after `out` is full
  kUnfinished,  ///< the input ends before the stream does
  kTrailing,    ///< input is left behind the end of the stream
};

/// "deflate stream broken", ...: what a message says of a member.
std::string_view describe(InflateOutcome outcome);

/// Inflates a raw deflate stream (RFC 1951) that must fill `out` exactly and use all of `in`.
/// Writes nowhere but into `out`, so what a bomb can cost is bounded by the caller.
InflateOutcome inflate_exactly(std::span<const std::uint8_t> in, std::span<std::uint8_t> out);

}  // namespace cubist
