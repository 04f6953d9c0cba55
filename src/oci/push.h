#pragma once

#include <string>

#include "base/sha256.h"
#include "oci/cut.h"
#include "oci/progress.h"
#include "oci/session.h"

namespace cubist::oci {

struct PushOptions {
  ConnectOptions connect;
  std::string mount_from;  ///< another repository of the registry that may have the blobs; or empty
  std::uint64_t layer_bytes = kShardBytes;  ///< of kernels in one layer
  Progress::Listener progress;
};

struct PushReport {
  Sha256Digest digest;    ///< of the image manifest
  Sha256Digest identity;  ///< of the bundle
  std::size_t blobs_total = 0;
  std::size_t blobs_present = 0;  ///< in the repository before
  std::size_t blobs_mounted = 0;
  std::uint64_t file_bytes = 0;
  std::uint64_t sent_bytes = 0;  ///< of blobs
  double seconds = 0;
};

/// Puts a bundle file into a registry under the reference's tag. Blobs that are there are not sent
/// again, and the tag is set last: whoever pulls meanwhile gets the bundle that was there before.
/// The same file makes the same digest.
///
/// errors  kInvalidArgument: a reference without tag, or with a digest; kIntegrity: not a bundle;
///         kNetwork, kIo, kInterrupted
Result<PushReport> push(const std::string& file, const Reference& reference,
                        const PushOptions& options);

}  // namespace cubist::oci
