#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "base/result.h"
#include "manifest/manifest.h"
#include "model/verified_cubin.h"
#include "registry/fetch.h"
#include "registry/store.h"

namespace cubist::runtime {

/// Gives the verified bytes of an artifact: from the store, else from its pack's sources (and then
/// into the store). Safe from any thread and any number of processes.
class CubinProvider {
 public:
  /// offline  no source is asked that may need the network
  CubinProvider(Store store, bool offline) : store_(std::move(store)), offline_(offline) {}

  const Store& store() const { return store_; }

  /// manifest  the one the pack belongs to
  /// errors    kOffline: missing here, and only the network has it; kNetwork, kIntegrity, kIo: from
  ///           the sources and the store; kInterrupted
  Result<VerifiedCubin> get(const Manifest& manifest, const Pack& pack,
                            const KernelRecord& record) const;

  /// Brings many artifacts of one manifest into the store. Progress counts from `before` on.
  /// errors  as get(); kIo also where the store cannot be written
  Status fetch(const Manifest& manifest, std::span<const FetchItem> items,
               const FetchProgress& before = {}) const;

  /// Told how far fetches are, one call at a time, from the threads that fetch; false ends the
  /// fetch it was told of. Empty: nobody.
  using ProgressCallback = std::function<bool(const FetchProgress&)>;
  void set_progress(ProgressCallback callback);
  /// Ends the fetches that are under way, from any thread, with kInterrupted.
  void cancel();

 private:
  class Call;

  Store store_;
  bool offline_;
  mutable std::mutex calls_mutex_;
  mutable std::set<Call*> calls_;
  mutable std::mutex progress_mutex_;
  ProgressCallback progress_;
};

}  // namespace cubist::runtime
