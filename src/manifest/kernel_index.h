#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/lent_string.h"
#include "base/result.h"
#include "base/sha256.h"
#include "manifest/manifest.h"

namespace cubist {

/// What stat says of a file. While all of it stays the same, so do the bytes, as far as a file
/// system tells: a change in place moves ctime, which nobody can set.
struct FileIdentity {
  std::uint64_t size_bytes = 0;
  std::uint64_t inode = 0;
  std::int64_t mtime_ns = 0;  ///< since the epoch
  std::int64_t ctime_ns = 0;

  bool operator==(const FileIdentity&) const = default;
};

/// Which manifest an index stands for.
struct KernelIndexHead {
  Sha256Digest manifest_sha256;  ///< of the JSON text that was parsed
  FileIdentity file;             ///< the file it was read from

  bool operator==(const KernelIndexHead&) const = default;
};

/// A valid manifest in a form that is read without parsing: fixed rows, and texts that records
/// borrow where they lie. For the version of Cubist that wrote it alone.
///
/// errors  kInvalidArgument: larger than 4 GB
Result<std::vector<std::uint8_t>> write_kernel_index(const Manifest& manifest,
                                                     const KernelIndexHead& head);

/// The head of an index, none of the rest looked at.
/// errors  kIntegrity: no index, one of another version, or cut off
Result<KernelIndexHead> read_kernel_index_head(std::span<const std::uint8_t> bytes);

/// The whole manifest, all or nothing. Bytes from anywhere: nothing in them can do worse than fail,
/// or give a manifest that breaks a rule of validate_manifest, which is not asked again. The
/// checksum keeps out what rotted; who may have written the file is for the caller to look at.
///
/// bytes   what `lender` keeps; the records' texts lie there
/// errors  kIntegrity
Result<Manifest> read_kernel_index(std::span<const std::uint8_t> bytes, Lender lender);

/// Puts size and checksum into the head, as the writer does last. For tests that change an index.
void seal_kernel_index(std::vector<std::uint8_t>& bytes);

}  // namespace cubist
