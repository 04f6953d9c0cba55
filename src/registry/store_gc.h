#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/result.h"
#include "base/sha256.h"
#include "registry/store.h"

namespace cubist {

struct GcOptions {
  std::uint64_t max_bytes = 0;              ///< the entries and bundles shall not have more
  std::unordered_set<Sha256Digest> pinned;  ///< never removed
  /// Removed whatever their size and age, pinned or not: kernels that must not run.
  std::unordered_set<Sha256Digest> unwanted;
  bool dry_run = false;
  const std::atomic<bool>* cancel = nullptr;
};

struct GcReport {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::size_t entries_before = 0;    ///< a bundle counts as one
  std::vector<std::string> removed;  ///< paths
  std::size_t kept_in_use = 0;       ///< passed over: somebody holds the entry open
  std::size_t kept_pinned = 0;       ///< passed over
  std::size_t unfinished_removed = 0;
  /// Bundles that hold an unwanted kernel beside others: they stay.
  std::vector<std::string> with_unwanted;
};

/// Removes entries and bundles of the writable layer, those fetched longest ago first, until the
/// rest fits. When one was last fetched is its time stamp: a hit writes nothing, so nothing else is
/// known; installs and pulls set it of what they rely on (store_use.h). Not removed: pinned
/// entries, bundles that hold a pinned kernel, and what somebody holds (a shared flock on the file,
/// as Store::hold() and an open bundle have). Several at once take turns; an entry that vanishes
/// meanwhile counts as removed. What dead writers left goes too. Unwanted entries go first, unless
/// they are in use; a bundle is not changed, so one that holds such a kernel is named.
///
/// errors  kIo: the store cannot be listed or an entry cannot be removed; kInterrupted
Result<GcReport> collect_garbage(const Store& store, const GcOptions& options);

}  // namespace cubist
