#include "registry/store_gc.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/log.h"
#include "registry/digest_lock.h"
#include "registry/entry_file.h"
#include "registry/store_check.h"
#include "registry/store_file.h"

namespace cubist {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::minutes kLongestWait{15};

struct Candidate {
  std::string path;
  Sha256Digest sha256;
  std::uint64_t bytes = 0;
  timespec fetched{};
};

bool older(const Candidate& a, const Candidate& b) {
  if (a.fetched.tv_sec != b.fetched.tv_sec) return a.fetched.tv_sec < b.fetched.tv_sec;
  if (a.fetched.tv_nsec != b.fetched.tv_nsec) return a.fetched.tv_nsec < b.fetched.tv_nsec;
  return a.path < b.path;
}

/// No artifact has this digest as far as anybody knows; its lock stands for the whole store.
Sha256Digest whole_store() {
  Sha256Digest digest;
  digest.bytes.fill(0xff);
  return digest;
}

bool interrupted(const GcOptions& options) {
  return options.cancel != nullptr && options.cancel->load();
}

Result<std::vector<Candidate>> list_candidates(const Store& store) {
  std::vector<std::string> strangers;
  CUBIST_ASSIGN_OR_RETURN(const std::vector<EntryToCheck> entries,
                          list_entries(Store({store.root(), {}}), strangers));
  std::vector<Candidate> candidates;
  for (const EntryToCheck& entry : entries) {
    struct stat info {};
    if (::lstat(entry.path.c_str(), &info) != 0) {
      if (errno == ENOENT || errno == ENOTDIR) continue;  // somebody else removed it
      return tl::unexpected<Error>(store_read_error("cannot look at", entry.path, errno));
    }
    if (!S_ISREG(info.st_mode)) continue;
    candidates.push_back(
        {entry.path, entry.sha256, static_cast<std::uint64_t>(info.st_size), info.st_mtim});
  }
  std::sort(candidates.begin(), candidates.end(), &older);
  return candidates;
}

enum class Removal : std::uint8_t { kRemoved, kInUse };

Result<Removal> remove_unless_in_use(const std::string& path, bool dry_run) {
  const UniqueFd fd = open_in_store(path, kEntryDepth, O_RDONLY);
  if (!fd.valid() && errno == ENOENT) return Removal::kRemoved;
  // Where locks do not work nobody can say whether it is in use; its readers have their bytes
  // anyway.
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Removal::kInUse;
  }
  if (dry_run || unlink_in_store(path, kEntryDepth) == 0 || errno == ENOENT)
    return Removal::kRemoved;
  return tl::unexpected<Error>(store_write_error("cannot remove", path, errno));
}

Status take_turn(DigestLocks& locks, const GcOptions& options) {
  const auto deadline = std::chrono::steady_clock::now() + kLongestWait;
  while (locks.try_take(whole_store()) == DigestLocks::Outcome::kBusy) {
    if (interrupted(options)) return fail(StatusCode::kInterrupted, "interrupted");
    if (std::chrono::steady_clock::now() > deadline) break;
    std::this_thread::sleep_for(kLookEvery);
  }
  return {};
}

}  // namespace

Result<GcReport> collect_garbage(const Store& store, const GcOptions& options) {
  GcReport report;
  if (::access((store.root() + "/sha256").c_str(), F_OK) != 0 && errno == ENOENT) return report;
  DigestLocks locks(store.root());
  if (!options.dry_run) CUBIST_RETURN_IF_ERROR(take_turn(locks, options));
  CUBIST_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, list_candidates(store));
  for (const Candidate& one : candidates) report.bytes_before += one.bytes;
  report.entries_before = candidates.size();
  report.bytes_after = report.bytes_before;
  if (!options.dry_run) report.unfinished_removed = store.sweep();
  for (const Candidate& one : candidates) {
    if (report.bytes_after <= options.max_bytes) break;
    if (interrupted(options)) return fail(StatusCode::kInterrupted, "interrupted");
    if (options.pinned.count(one.sha256) != 0) {
      ++report.kept_pinned;
      continue;
    }
    CUBIST_ASSIGN_OR_RETURN(const Removal removal, remove_unless_in_use(one.path, options.dry_run));
    if (removal == Removal::kInUse) {
      ++report.kept_in_use;
      continue;
    }
    report.bytes_after -= one.bytes;
    report.removed.push_back(one.path);
  }
  return report;
}

}  // namespace cubist
