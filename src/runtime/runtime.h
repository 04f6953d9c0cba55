#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/launcher.h"
#include "manifest/manifest.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "runtime/cubin_provider.h"
#include "selector/kernel_table.h"
#include "selector/select.h"

namespace cubist::runtime {

class Selected;

struct RuntimeOptions {
  std::vector<std::string> manifests;  ///< files, or names of shipped ones; tried in this order
  std::string store_dir;               ///< empty: CUBIST_STORE, else the XDG cache folder
  bool offline = false;                ///< sources on this machine only
  bool strict = false;                 ///< refuse where the published rules refuse
};

struct SelectionCounters {
  std::uint64_t selections = 0;
  std::uint64_t fallbacks = 0;  ///< among them; a growing number: the rules miss what is deployed
};

/// Joins manifests, selection, store and launcher; the only place that knows them all. Safe from
/// any thread. Opening and selecting touch neither network nor driver.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  /// errors  kInvalidArgument: no manifest; kNotFound, kIo, kManifestInvalid
  static Result<std::shared_ptr<Runtime>> open(const RuntimeOptions& options);
  ~Runtime();

  const std::vector<Manifest>& manifests() const { return manifests_; }
  const selector::KernelTable& kernels() const { return kernels_; }
  const Store& store() const { return cubins_.store(); }
  const RuntimeOptions& options() const { return options_; }
  selector::SelectOptions select_options() const;
  std::size_t num_kernels() const;

  /// Chooses kernels. Pure. The answer keeps the runtime alive.
  Result<std::unique_ptr<Selected>> select(const AttentionProblem& problem,
                                           const DeviceProfile& device);
  /// Of `select` so far, failures not counted.
  SelectionCounters selection_counters() const {
    return {selections_.load(std::memory_order_relaxed),
            fallbacks_.load(std::memory_order_relaxed)};
  }

  /// A kernel by its name or the hexadecimal digits of its SHA-256.
  /// errors  kNotFound; kInvalidArgument: the name is that of several artifacts
  Result<const KernelRecord*> find_kernel(std::string_view name_or_sha256) const;

  /// The verified bytes of one of this runtime's kernels; fetches where the store has none.
  Result<VerifiedCubin> cubin(const KernelRecord& record) const;
  /// Brings artifacts into the store, many at once; no records: all there are.
  /// errors  as CubinProvider::fetch
  Status fetch(std::span<const KernelRecord* const> records) const;
  void set_fetch_progress(CubinProvider::ProgressCallback callback) {
    cubins_.set_progress(std::move(callback));
  }
  /// Ends the fetches under way; later ones are not concerned.
  void cancel_fetches() { cubins_.cancel(); }

  /// Opens libcuda at the first call. errors  kDriverUnavailable
  Result<launcher::Launcher*> launcher();
  /// All zero before the first launch or prepare.
  launcher::LoadCounters load_counters() const;

 private:
  Runtime(RuntimeOptions options, Store store);
  Status build_table();

  RuntimeOptions options_;
  std::vector<Manifest> manifests_;  ///< never moved: tables and plans point into it
  selector::KernelTable kernels_;
  CubinProvider cubins_;
  std::atomic<std::uint64_t> selections_{0};
  std::atomic<std::uint64_t> fallbacks_{0};
  std::mutex launcher_mutex_;
  std::unique_ptr<launcher::Launcher> owned_launcher_;
  std::atomic<launcher::Launcher*> launcher_{nullptr};
};

}  // namespace cubist::runtime
