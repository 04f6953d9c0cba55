#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "bundle/bundle.h"
#include "oci/image.h"

namespace cubist::oci {

/// A bundle file as a registry has it: where to cut, and the texts around the pieces. The same file
/// makes the same digests.
struct Cut {
  struct Piece {
    std::uint64_t offset = 0;  ///< in the file
    Descriptor blob;
  };
  std::vector<Piece> pieces;  ///< head, shards, tail: joined they are the file
  Image image;
  std::string index_text;
  std::string config_text;
  std::string image_text;
  Sha256Digest digest;  ///< of image_text: what the bundle is called by in registries
};

/// Whole kernels up to this; a larger kernel is a shard of its own. Unit: bytes. Small enough that
/// several travel at once, large enough that a pack of half a gigabyte is some fifteen of them.
inline constexpr std::uint64_t kShardBytes = 32ULL << 20;

/// Reads the file once, with `threads` threads, to hash it.
///
/// file    what `bundle` was opened on
/// errors  kInvalidArgument: no kernel, or so many that the manifest would be too large;
///         kInterrupted; those of reading
Result<Cut> cut_bundle(const bundle::Bundle& bundle, RandomAccess& file, unsigned threads,
                       const std::atomic<bool>* cancel, std::uint64_t shard_bytes = kShardBytes);

}  // namespace cubist::oci
