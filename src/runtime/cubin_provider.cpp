#include "runtime/cubin_provider.h"

#include <algorithm>

namespace cubist::runtime {

/// One fetch under way, as cancel() finds it.
class CubinProvider::Call {
 public:
  explicit Call(const CubinProvider& provider) : provider_(provider) {
    const std::lock_guard lock(provider_.calls_mutex_);
    provider_.calls_.insert(this);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const std::lock_guard lock(provider_.calls_mutex_);
    provider_.calls_.erase(this);
  }

  FetchOptions options(const Manifest& manifest, const FetchProgress& before) {
    FetchOptions options;
    options.offline = provider_.offline_;
    options.manifest_folder = manifest.folder;
    options.cancel = &stop_;
    options.progress = [this, before](const FetchProgress& now) { report(before, now); };
    return options;
  }
  void stop() { stop_ = true; }

 private:
  void report(const FetchProgress& before, FetchProgress now) {
    const std::lock_guard lock(provider_.progress_mutex_);
    if (!provider_.progress_) return;
    now.files_total = std::max(before.files_total, before.files_done + now.files_total);
    now.files_done += before.files_done;
    now.files_failed += before.files_failed;
    now.bytes_total = std::max(before.bytes_total, before.bytes_done + now.bytes_total);
    now.bytes_done += before.bytes_done;
    now.received_bytes += before.received_bytes;
    now.seconds += before.seconds;
    if (!provider_.progress_(now)) stop();
  }

  const CubinProvider& provider_;
  std::atomic<bool> stop_{false};
};

Result<VerifiedCubin> CubinProvider::get(const Manifest& manifest, const Pack& pack,
                                         const KernelRecord& record) const {
  Call call(*this);
  FetchOptions options = call.options(manifest, {});
  // A store on a read-only file system must not keep a kernel from being launched.
  options.memory_if_unwritable = true;
  return open_or_fetch(store_, {&pack, &record}, options);
}

Status CubinProvider::fetch(const Manifest& manifest, std::span<const FetchItem> items,
                            const FetchProgress& before) const {
  Call call(*this);
  CUBIST_ASSIGN_OR_RETURN(const FetchReport report,
                          cubist::fetch(store_, items, call.options(manifest, before)));
  return report.status();
}

void CubinProvider::set_progress(ProgressCallback callback) {
  const std::lock_guard lock(progress_mutex_);
  progress_ = std::move(callback);
}

void CubinProvider::cancel() {
  const std::lock_guard lock(calls_mutex_);
  for (Call* call : calls_) call->stop();
}

}  // namespace cubist::runtime
