#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/context_list.h"
#include "launcher/context_table.h"
#include "launcher/module_cache.h"
#include "launcher/prepare.h"
#include "model/launch_plan.h"

namespace cubist::launcher {

/// The CUDA version that a kernel's manifest asks of the driver, as cuDriverGetVersion numbers it;
/// 0: it does not say.
using DriverNeed = std::function<std::int32_t(const KernelRecord&)>;

/// A plan whose preconditions hold in one context, with its kernel loaded there.
struct ReadyPlan {
  const LaunchPlan* plan = nullptr;
  const LoadedKernel* kernel = nullptr;
  const ContextInfo* context = nullptr;
};

/// What Launcher::ready found for one selection, by context. Lives beside the selection and dies
/// with it; belongs to one launcher.
class ReadyMemo {
 private:
  friend class Launcher;
  ContextList<ReadyPlan> plans_;
  std::mutex mutex_;
};

/// Loads and launches. Knows neither files nor the network: bytes come from the CubinSource. Safe
/// from any thread; holds no lock across a driver call once a kernel is loaded.
class Launcher {
 public:
  /// driver_need  asked before a kernel is loaded; empty: no kernel asks for a version
  Launcher(std::shared_ptr<driver::Driver> driver, CubinSource source, DriverNeed driver_need = {});

  driver::Driver& driver() { return *driver_; }

  /// The first plan of `selection`, left to right, that the current context's device takes and
  /// whose min_active_clusters holds; its kernel is loaded where it was not. The answer is kept in
  /// `memo`, so that the next call for the same context is two look-ups.
  ///
  /// errors  of ContextTable::current and ModuleCache::load; kDeviceMismatch when no plan holds
  /// (the
  ///         message is the first plan's reason)
  Result<ReadyPlan> ready(const Selection& selection, ReadyMemo& memo,
                          const cuda::CUstream* stream);
  /// The same where the current context is known: no driver call, if the memo has the answer.
  Result<ReadyPlan> ready(const Selection& selection, ReadyMemo& memo, const ContextInfo& context,
                          const cuda::CUstream* stream);

  /// Loads kernels into the current context, several at once; those that are loaded already cost a
  /// look-up. Other kernels are loaded although one fails.
  ///
  /// num_threads  at most; 0: as many as the machine has, up to kMaxPrepareThreads
  /// bring        told once of the kernels that are to be loaded, before the first is
  /// errors       of ContextTable::current; kInterrupted: of `bring`; what befell single kernels is
  ///              in the report
  Result<PrepareReport> prepare(std::span<const KernelRecord* const> records,
                                unsigned num_threads = 0, const BringKernels& bring = {});

  /// The device behind the context that is current. errors  of ContextTable::current
  Result<const ContextInfo*> current_context() { return contexts_.current(*driver_); }

  LoadCounters counters() const { return modules_.counters(); }

 private:
  std::int32_t min_driver_of(const KernelRecord& record) const {
    return driver_need_ ? driver_need_(record) : 0;
  }
  Result<ReadyPlan> find_ready(const Selection& selection, const ContextInfo& context,
                               const cuda::CUstream* stream);

  std::shared_ptr<driver::Driver> driver_;
  DriverNeed driver_need_;
  ContextTable contexts_;
  ModuleCache modules_;
};

}  // namespace cubist::launcher
