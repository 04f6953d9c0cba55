#include "bundle/install_kernels.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <unordered_set>

#include "registry/install_queue.h"
#include "registry/store_check.h"
#include "registry/store_use.h"

namespace cubist::bundle {
namespace {

using Clock = std::chrono::steady_clock;

// What is unpacked and not yet published is in memory.
constexpr std::size_t kMaxPendingKernels = 256;
constexpr std::uint64_t kMaxPendingBytes = 256ULL << 20;
constexpr auto kTick = std::chrono::milliseconds(100);

std::vector<KernelRecord> records_of(const Bundle& bundle) {
  std::vector<KernelRecord> records;
  records.reserve(bundle.description().kernels.size());
  for (const Kernel& kernel : bundle.description().kernels) {
    KernelRecord record;
    record.sha256 = kernel.sha256;
    record.size_bytes = kernel.size_bytes;
    records.push_back(std::move(record));
  }
  return records;
}

/// Kernels that no layer has as an entry with the right bytes; the other entries count as used.
Result<std::vector<std::size_t>> find_missing(const Store& store,
                                              const std::vector<KernelRecord>& records,
                                              const InstallOptions& options) {
  std::vector<const KernelRecord*> wanted;
  wanted.reserve(records.size());
  for (const KernelRecord& record : records) wanted.push_back(&record);
  std::vector<const KernelRecord*> absent;
  CUBIST_ASSIGN_OR_RETURN(auto entries, find_entries(store, wanted, absent));
  std::unordered_set<Sha256Digest> missing;
  for (const KernelRecord* record : absent) missing.insert(record->sha256);
  std::erase_if(entries, [&](const EntryToCheck& entry) {
    return entry.bundle != nullptr && missing.insert(entry.sha256).second;
  });
  CheckOptions check;
  check.threads = options.threads;
  check.cancel = options.cancel;
  CUBIST_ASSIGN_OR_RETURN(const CheckReport checked, check_entries(entries, check));
  for (const EntryFinding& finding : checked.findings) {
    missing.insert(entries[finding.entry].sha256);
  }
  std::set<std::string> used;
  for (const EntryToCheck& entry : entries) {
    if (!missing.contains(entry.sha256)) used.insert(entry.path);
  }
  record_use(store, used);
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (missing.contains(records[i].sha256)) indices.push_back(i);
  }
  return indices;
}

/// Feeds the queue and takes out of it what is done.
class KernelInstaller {
 public:
  KernelInstaller(const Bundle& bundle, const Store& store,
                  const std::vector<KernelRecord>& records, const InstallOptions& options,
                  InstallReport& report)
      : bundle_(bundle),
        records_(records),
        options_(options),
        report_(report),
        queue_(store, options.threads, [this] { wake(); }) {}

  Status run(const std::vector<std::size_t>& missing) {
    for (const std::size_t kernel : missing) progress_.bytes_total += records_[kernel].size_bytes;
    progress_.kernels_total = missing.size();
    auto next = missing.begin();
    while (true) {
      while (next != missing.end() && !error_ && has_room()) submit(*next++);
      if (queue_.pending() == 0) break;
      wait();
      for (const InstallQueue::Done& done : queue_.drain()) finish(done);
      if (options_.cancel != nullptr && *options_.cancel && !error_) {
        error_ = Error(StatusCode::kInterrupted,
                       "stopped; no manifest was installed, and the kernels that are there are "
                       "whole: the same command goes on");
      }
      show();
    }
    if (error_) return tl::unexpected<Error>(std::move(*error_));
    return {};
  }

 private:
  bool has_room() const {
    return queue_.pending() < kMaxPendingKernels && pending_bytes_ < kMaxPendingBytes;
  }

  void submit(std::size_t kernel) {
    InstallQueue::Task task;
    task.id = kernel;
    task.record = &records_[kernel];
    task.origin = fmt::format("{}:{}", bundle_.file_name(), bundle_.kernel_member(kernel).name);
    task.take = [this, kernel](HttpResponse) { return bundle_.unpack_kernel(kernel); };
    pending_bytes_ += records_[kernel].size_bytes;
    queue_.submit(std::move(task));
  }

  void finish(const InstallQueue::Done& done) {
    const std::uint64_t bytes = records_[done.id].size_bytes;
    pending_bytes_ -= bytes;
    if (done.error) {
      if (!error_) error_ = done.error;
      return;
    }
    ++report_.kernels_installed;
    report_.installed_bytes += bytes;
    ++progress_.kernels_done;
    progress_.bytes_done += bytes;
  }

  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    changed_.notify_one();
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kTick, [this] { return woken_; });
    woken_ = false;
  }

  void show() {
    const Clock::time_point now = Clock::now();
    if (!options_.progress || now - shown_ < kTick) return;
    shown_ = now;
    options_.progress(progress_);
  }

  const Bundle& bundle_;
  const std::vector<KernelRecord>& records_;
  const InstallOptions& options_;
  InstallReport& report_;
  InstallProgress progress_;
  std::uint64_t pending_bytes_ = 0;
  std::optional<Error> error_;
  Clock::time_point shown_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool woken_ = false;
  InstallQueue queue_;  // last: its threads use what is above
};

}  // namespace

Status install_kernels(const Bundle& bundle, const Store& store, const InstallOptions& options,
                       InstallReport& report) {
  const std::vector<KernelRecord> records = records_of(bundle);
  CUBIST_ASSIGN_OR_RETURN(const auto missing, find_missing(store, records, options));
  report.kernels_present = records.size() - missing.size();
  store.sweep();
  return KernelInstaller(bundle, store, records, options, report).run(missing);
}

}  // namespace cubist::bundle
