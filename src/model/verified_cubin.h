#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"

namespace cubist {

/// Bytes that were hashed in memory and found equal to the digest a manifest names. The only way to
/// make one is verify(), which hashes the very bytes it keeps; so the driver never sees others.
/// Cheap to copy (shared, immutable); safe from any thread.
class VerifiedCubin {
 public:
  /// errors  kIntegrity: size or digest differ; the message recognises truncation, an empty file,
  ///         HTML, a Git LFS pointer and bytes that are no ELF, and says `origin`
  static Result<VerifiedCubin> verify(std::vector<std::uint8_t> bytes, const Sha256Digest& expected,
                                      std::uint64_t expected_size_bytes, const std::string& origin);

  std::span<const std::uint8_t> bytes() const { return *bytes_; }
  const Sha256Digest& sha256() const { return sha256_; }

 private:
  VerifiedCubin(std::vector<std::uint8_t> bytes, const Sha256Digest& digest)
      : bytes_(std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes))),
        sha256_(digest) {}

  std::shared_ptr<const std::vector<std::uint8_t>> bytes_;
  Sha256Digest sha256_;
};

}  // namespace cubist
