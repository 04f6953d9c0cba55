#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "oci/image.h"

namespace cubist::oci {

/// Where a kernel's entry (bundle/entry.h) lies.
struct Place {
  Sha256Digest sha256;
  std::uint32_t shard = 0;         ///< index into Image::shards
  std::uint64_t offset = 0;        ///< of the entry in the shard
  std::uint64_t packed_bytes = 0;  ///< of the entry
  std::uint64_t size_bytes = 0;    ///< of the kernel

  bool operator==(const Place&) const = default;
};

/// The index layer: every kernel of a bundle, in the order they lie in it. It is a hint about where
/// bytes may be; what comes from there is held to the kernel's digest.
///
///   { "schema": "cubist.bundle.index", "schema_version": 1,
///     "shards": [ "sha256:...", ... ],
///     "kernels": [ [ "<64 hex digits>", shard, offset, packed bytes, size ], ... ] }
struct Index {
  static constexpr std::int32_t kSchemaVersion = 1;
  std::vector<Place> kernels;

  /// Null if the bundle has no such kernel.
  const Place* find(const Sha256Digest& digest) const;
};

std::string write_index(const Index& index, const Image& image);

/// errors  kIntegrity: not that; other shards than the image's; entries that do not fill the shards
///         one behind the other; a kernel twice
Result<Index> parse_index(std::string_view text, const Image& image, const std::string& name);

}  // namespace cubist::oci
