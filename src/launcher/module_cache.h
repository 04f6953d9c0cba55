#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/context_list.h"
#include "launcher/context_table.h"
#include "model/kernel_record.h"
#include "model/verified_cubin.h"

namespace cubist::launcher {

/// Where a kernel's bytes come from: the store, or a fetch. Called without a lock that a launch
/// takes; from several threads at once for different kernels.
using CubinSource = std::function<Result<VerifiedCubin>(const KernelRecord&)>;

/// A kernel that can be launched in one context. Immutable once it can be found.
struct LoadedKernel {
  cuda::CUcontext context = nullptr;
  std::uint64_t context_id = 0;
  cuda::CUmodule module = nullptr;
  cuda::CUfunction function = nullptr;
};

/// What loading cost so far.
struct LoadCounters {
  std::uint64_t loads = 0;         ///< modules loaded
  std::uint64_t failed_loads = 0;  ///< loads that ended in an error
  std::uint64_t nanoseconds = 0;   ///< spent in the driver for the loads, all threads added up
};

/// One artifact's loaded instances, by context.
class KernelSlot {
 public:
  const LoadedKernel* find(std::uint64_t context_id) const { return loaded_.find(context_id); }

 private:
  friend class ModuleCache;
  ContextList<LoadedKernel> loaded_;
  std::mutex mutex_;  ///< held by the thread that loads
};

/// Loads every kernel once a context, when it is first needed, under any number of threads.
class ModuleCache {
 public:
  ModuleCache(std::shared_ptr<driver::Driver> driver, CubinSource source);
  /// Unloads all; see unload_all().
  ~ModuleCache();
  ModuleCache(const ModuleCache&) = delete;
  ModuleCache& operator=(const ModuleCache&) = delete;

  /// The slot of a record's (sha256, name); stays where it is as long as the cache lives.
  KernelSlot& slot(const KernelRecord& record);

  /// The record's kernel in `context`, which must be current; loads it if it is not there yet.
  ///
  /// stream  the launch's stream; null where nothing is launched (prepare). errors:
  /// kCapture      the kernel is not loaded and `stream` is being captured; the capture stays valid
  /// kIntegrity    the cubin's structure is broken
  /// kManifestInvalid  the cubin has no function of that name
  /// and what the source and the driver answer. After an error nothing stays loaded.
  Result<const LoadedKernel*> load(const KernelRecord& record, const ContextInfo& context,
                                   const cuda::CUstream* stream);

  LoadCounters counters() const;

 private:
  struct Key {
    Sha256Digest sha256;
    std::string name;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return std::hash<Sha256Digest>()(key.sha256) ^ std::hash<std::string>()(key.name);
    }
  };

  Status refuse_capture(const KernelRecord& record, cuda::CUstream stream) const;
  Result<LoadedKernel> load_now(const KernelRecord& record, const ContextInfo& context) const;
  void unload_all();

  std::shared_ptr<driver::Driver> driver_;
  CubinSource source_;
  std::shared_mutex slots_mutex_;
  std::unordered_map<Key, std::unique_ptr<KernelSlot>, KeyHash> slots_;
  std::atomic<std::uint64_t> loads_{0};
  std::atomic<std::uint64_t> failed_loads_{0};
  mutable std::atomic<std::uint64_t> nanoseconds_{0};
};

}  // namespace cubist::launcher
