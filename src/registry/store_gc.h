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
  std::uint64_t max_bytes = 0;              ///< the entries shall not have more
  std::unordered_set<Sha256Digest> pinned;  ///< never removed
  bool dry_run = false;
  const std::atomic<bool>* cancel = nullptr;
};

struct GcReport {
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
  std::size_t entries_before = 0;
  std::vector<std::string> removed;  ///< paths
  std::size_t kept_in_use = 0;       ///< passed over: somebody holds the entry open
  std::size_t kept_pinned = 0;       ///< passed over
  std::size_t unfinished_removed = 0;
};

/// Removes entries of the writable layer, those fetched longest ago first, until the rest fits.
/// When an entry was last fetched is its time stamp: a hit writes nothing, so nothing else is
/// known. Not removed: pinned entries, and those that somebody holds (a shared flock on the entry,
/// as Store::hold() gives). Several at once take turns; an entry that vanishes meanwhile counts as
/// removed. What dead writers left goes too.
///
/// errors  kIo: the store cannot be listed or an entry cannot be removed; kInterrupted
Result<GcReport> collect_garbage(const Store& store, const GcOptions& options);

}  // namespace cubist
