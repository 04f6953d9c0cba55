#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "launcher/launcher.h"
#include "launcher/scales.h"
#include "manifest/manifest.h"
#include "model/attention_problem.h"
#include "model/device_profile.h"
#include "overrides/overrides.h"
#include "runtime/aux_launcher.h"
#include "runtime/cubin_provider.h"
#include "selector/kernel_table.h"
#include "selector/select.h"
#include "trust/trust.h"

namespace cubist::runtime {

class Selected;

struct RuntimeOptions {
  std::vector<std::string> manifests;  ///< files, or names of shipped ones; tried in this order
  std::string store_dir;               ///< empty: CUBIST_STORE, else the XDG cache folder
  bool offline = false;                ///< sources on this machine only
  bool strict = false;                 ///< refuse where the published rules refuse
  std::string overrides;               ///< a rule file (docs/overrides.md); empty: none
  /// An empty state_folder: <store>/state.
  trust::Settings trust;
};

/// Device memory that launches need.
struct WorkspaceNeed {
  std::uint64_t size = 0;       ///< bytes
  std::uint64_t zero_size = 0;  ///< bytes at the start that must be zero before the first launch
  std::uint32_t alignment = 1;  ///< bytes
};

struct SelectionCounters {
  std::uint64_t selections = 0;
  std::uint64_t fallbacks = 0;  ///< among them; a growing number: the rules miss what is deployed
};

/// Joins manifests, selection, store and launcher; the only place that knows them all. Safe from
/// any thread. Opening and selecting touch neither network nor driver.
class Runtime : public std::enable_shared_from_this<Runtime> {
 public:
  /// Key statements, revocation lists and signatures are looked at here, once, and the rule file.
  /// errors  kInvalidArgument: no manifest; kNotFound, kIo, kManifestInvalid; kUntrusted and the
  ///         rest of Trust::open and Trust::check_manifest
  static Result<std::shared_ptr<Runtime>> open(const RuntimeOptions& options);
  ~Runtime();

  const std::vector<Manifest>& manifests() const { return manifests_; }
  /// Before any rule file.
  const selector::KernelTable& kernels() const { return kernels_; }
  /// Null: no rule file.
  const overrides::Overrides* overrides() const { return overrides_ ? &*overrides_ : nullptr; }
  const Store& store() const { return cubins_.store(); }
  const RuntimeOptions& options() const { return options_; }
  selector::SelectOptions select_options() const;
  std::size_t num_kernels() const;

  /// Chooses kernels. Pure. The answer keeps the runtime alive.
  Result<std::unique_ptr<Selected>> select(const AttentionProblem& problem,
                                           const DeviceProfile& device);
  /// The same for an owner that dies before the runtime: the answer does not keep it alive.
  Result<std::unique_ptr<Selected>> select_for_owner(const AttentionProblem& problem,
                                                     const DeviceProfile& device);
  /// Device memory that is enough for every launch of a range of problems, those of at most
  /// `largest`'s batch, max_q_len and max_kv_len and else like it: for buffers that CUDA graphs of
  /// several shapes share. No single selection of the range needs more. Pure.
  ///
  /// errors  as select() of the largest
  Result<WorkspaceNeed> workspace_bound(const AttentionProblem& largest,
                                        const DeviceProfile& device) const;
  /// Of `select` so far, failures not counted.
  SelectionCounters selection_counters() const {
    return {selections_.load(std::memory_order_relaxed),
            fallbacks_.load(std::memory_order_relaxed)};
  }

  /// A kernel by its name or the hexadecimal digits of its SHA-256.
  /// errors  kNotFound; kInvalidArgument: the name is that of several artifacts
  Result<const KernelRecord*> find_kernel(std::string_view name_or_sha256) const;

  /// The CUDA version that the kernel's pack asks of the driver; 0: it does not say.
  std::int32_t min_driver_of(const KernelRecord& record) const;

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

  /// Loads kernels into the current context, several at once, and fetches before that what the
  /// store lacks and the device can run. A second time costs a look-up a kernel.
  ///
  /// records      no records: all of this runtime's manifests that the device can run
  /// num_threads  at most; 0: as many as the machine has, up to launcher::kMaxPrepareThreads
  /// errors       no driver, no context; kInterrupted; kDeviceMismatch: all are asked for and the
  ///              device runs none; what befell single kernels is in the report
  Result<launcher::PrepareReport> prepare(std::span<const KernelRecord* const> records,
                                          unsigned num_threads = 0);

  /// Queues the kernel that makes bmm1 * log2(e) and bmm2 of five scales (launcher/scales.h says
  /// what they mean), one float each.
  ///
  /// problem  the attention call's; for its KV type and head size
  /// scales   those on the device; `host`: the others
  /// errors   of fill_fuse_scales_params and AuxLauncher::launch
  Status fuse_scales(const AttentionProblem& problem, const launcher::DeviceScales& scales,
                     const launcher::HostScales& host, std::uint64_t bmm1_scale_log2,
                     std::uint64_t bmm2_scale, cuda::CUstream stream);

  AuxLauncher& aux() { return *aux_; }

  /// Opens libcuda at the first call. errors  kDriverUnavailable
  Result<launcher::Launcher*> launcher();
  /// All zero before the first launch or prepare.
  launcher::LoadCounters load_counters() const;

 private:
  Runtime(RuntimeOptions options, Store store);
  Status build_table();
  Result<Selection> choose(const AttentionProblem& problem, const DeviceProfile& device) const;
  Result<std::unique_ptr<Selected>> select_as(std::shared_ptr<Runtime> owner,
                                              const AttentionProblem& problem,
                                              const DeviceProfile& device);
  struct Place {
    const Manifest* manifest = nullptr;
    const Pack* pack = nullptr;
  };
  /// Where a record belongs, by its address; nulls: it is of another runtime.
  Place place_of(const KernelRecord& record) const;
  /// The cubin, held against its pack's parameter layout.
  Result<VerifiedCubin> launchable_cubin(const KernelRecord& record) const;
  Status open_aux(trust::Trust& trust);

  RuntimeOptions options_;
  std::vector<Manifest> manifests_;  ///< never moved: tables and plans point into it
  /// The shipped cubist-aux, where none of the above has aux kernels.
  std::vector<Manifest> aux_manifests_;
  trust::RevokedKernels revoked_;
  selector::KernelTable kernels_;
  std::optional<overrides::Overrides> overrides_;
  CubinProvider cubins_;
  std::unique_ptr<AuxLauncher> aux_;
  std::atomic<std::uint64_t> selections_{0};
  std::atomic<std::uint64_t> fallbacks_{0};
  std::mutex launcher_mutex_;
  std::unique_ptr<launcher::Launcher> owned_launcher_;
  std::atomic<launcher::Launcher*> launcher_{nullptr};
};

}  // namespace cubist::runtime
