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
#include "registry/stored_bundle.h"

namespace cubist {
namespace {

constexpr std::chrono::milliseconds kLookEvery{50};
constexpr std::chrono::minutes kLongestWait{15};

struct Candidate {
  std::string path;
  int depth = kEntryDepth;
  std::uint64_t bytes = 0;
  timespec fetched{};
  bool pinned = false;
  bool unwanted = false;
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

/// Adds a regular file that is still there.
Status add_candidate(Candidate candidate, std::vector<Candidate>& candidates) {
  struct stat info {};
  if (::lstat(candidate.path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return {};  // somebody else removed it
    return tl::unexpected<Error>(store_read_error("cannot look at", candidate.path, errno));
  }
  if (!S_ISREG(info.st_mode)) return {};
  candidate.bytes = static_cast<std::uint64_t>(info.st_size);
  candidate.fetched = info.st_mtim;
  candidates.push_back(std::move(candidate));
  return {};
}

/// Opened for this alone: a bundle that this process holds would look as if it were in use.
Candidate look_into_bundle(const std::string& path, const GcOptions& options) {
  Candidate candidate{path, kStoreFileDepth, 0, {}, false, false};
  if (options.pinned.empty() && options.unwanted.empty()) return candidate;
  const auto opened = StoredBundle::open(path);
  if (!opened && opened.error().code() == StatusCode::kIntegrity)
    return candidate;  // serves nobody
  if (!opened) {       // nobody knows what it holds
    log(LogLevel::kWarning, "{}; it is kept as if it were pinned", opened.error().message());
    candidate.pinned = true;
    return candidate;
  }
  for (const StoredBundle::Kernel& kernel : (*opened)->kernels()) {
    candidate.pinned = candidate.pinned || options.pinned.contains(kernel.sha256);
    candidate.unwanted = candidate.unwanted || options.unwanted.contains(kernel.sha256);
  }
  return candidate;
}

Result<std::vector<Candidate>> list_candidates(const Store& store, const GcOptions& options) {
  std::vector<Candidate> candidates;
  std::vector<std::string> strangers;
  CUBIST_ASSIGN_OR_RETURN(const std::vector<EntryToCheck> entries,
                          list_entries_of_layer(store.root(), strangers));
  for (const EntryToCheck& entry : entries) {
    CUBIST_RETURN_IF_ERROR(add_candidate({entry.path,
                                          kEntryDepth,
                                          0,
                                          {},
                                          options.pinned.contains(entry.sha256),
                                          options.unwanted.contains(entry.sha256)},
                                         candidates));
  }
  const std::string folder = bundle_folder(store.root());
  CUBIST_ASSIGN_OR_RETURN(const auto bundles, names_in_store_folder(folder, 1));
  for (const std::string& name : bundles) {
    if (!is_bundle_name(name)) continue;
    CUBIST_RETURN_IF_ERROR(
        add_candidate(look_into_bundle(fmt::format("{}/{}", folder, name), options), candidates));
  }
  std::sort(candidates.begin(), candidates.end(), &older);
  return candidates;
}

enum class Removal : std::uint8_t { kRemoved, kInUse };

Result<Removal> remove_unless_in_use(const Candidate& one, bool dry_run) {
  const UniqueFd fd = open_in_store(one.path, one.depth, O_RDONLY);
  if (!fd.valid() && errno == ENOENT) return Removal::kRemoved;
  // Where locks do not work nobody can say whether it is in use; its readers have their bytes
  // anyway.
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    return Removal::kInUse;
  }
  if (dry_run || unlink_in_store(one.path, one.depth) == 0 || errno == ENOENT) {
    return Removal::kRemoved;
  }
  return tl::unexpected<Error>(store_write_error("cannot remove", one.path, errno));
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
  const auto has_none = [](const std::string& folder) {
    return ::access(folder.c_str(), F_OK) != 0 && errno == ENOENT;
  };
  if (has_none(store.root() + "/sha256") && has_none(bundle_folder(store.root()))) return report;
  DigestLocks locks(store.root());
  if (!options.dry_run) CUBIST_RETURN_IF_ERROR(take_turn(locks, options));
  CUBIST_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, list_candidates(store, options));
  for (const Candidate& one : candidates) report.bytes_before += one.bytes;
  report.entries_before = candidates.size();
  report.bytes_after = report.bytes_before;
  if (!options.dry_run) report.unfinished_removed = store.sweep();
  const auto remove = [&](const Candidate& one) -> Status {
    if (interrupted(options)) return fail(StatusCode::kInterrupted, "interrupted");
    CUBIST_ASSIGN_OR_RETURN(const Removal removal, remove_unless_in_use(one, options.dry_run));
    if (removal == Removal::kInUse) {
      ++report.kept_in_use;
      return {};
    }
    report.bytes_after -= one.bytes;
    report.removed.push_back(one.path);
    return {};
  };
  const auto is_unwanted_entry = [](const Candidate& one) {
    return one.unwanted && one.depth == kEntryDepth;
  };
  for (const Candidate& one : candidates) {
    if (is_unwanted_entry(one)) CUBIST_RETURN_IF_ERROR(remove(one));
  }
  for (const Candidate& one : candidates) {
    if (report.bytes_after <= options.max_bytes) break;
    if (is_unwanted_entry(one)) continue;
    if (one.pinned) {
      ++report.kept_pinned;
    } else {
      CUBIST_RETURN_IF_ERROR(remove(one));
    }
  }
  for (const Candidate& one : candidates) {
    if (!one.unwanted || one.depth == kEntryDepth) continue;
    const auto& removed = report.removed;
    if (std::find(removed.begin(), removed.end(), one.path) == removed.end()) {
      report.with_unwanted.push_back(one.path);
    }
  }
  return report;
}

}  // namespace cubist
