#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"

namespace cubist {

/// Bytes that can be read at any offset: a file here, or one behind HTTP range requests.
/// Not safe from two threads at once unless an implementation says so.
class RandomAccess {
 public:
  virtual ~RandomAccess() = default;

  /// What messages call it: a path or URL (without credentials).
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;
  /// Fills all of `out` from `offset`; kIntegrity if the bytes end before that.
  virtual Status read(std::uint64_t offset, std::span<std::uint8_t> out) = 0;
};

}  // namespace cubist
