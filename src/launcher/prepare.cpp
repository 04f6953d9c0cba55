#include "launcher/prepare.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "base/threads.h"
#include "launcher/launcher.h"
#include "launcher/preconditions.h"

namespace cubist::launcher {
namespace {

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

/// Kernels that threads take one by one.
class PrepareRun {
 public:
  PrepareRun(driver::Driver& driver, ModuleCache& modules, const ContextInfo& context,
             PrepareReport& report)
      : driver_(driver), modules_(modules), context_(context), report_(report) {}

  /// Notes which kernels are loaded, and which cannot be here; returns those to be loaded.
  template <class MinDriverOf>
  std::vector<const KernelRecord*> sort_out(MinDriverOf min_driver_of) {
    std::vector<const KernelRecord*> wanted;
    for (PreparedKernel& kernel : report_.kernels) {
      kernel.was_loaded = modules_.slot(*kernel.record).find(context_.id) != nullptr;
      if (kernel.was_loaded) continue;
      const Status fits =
          check_kernel_fits(*kernel.record, min_driver_of(*kernel.record), context_);
      if (fits) wanted.push_back(kernel.record);
      if (!fits) kernel.error = fits.error();
    }
    return wanted;
  }

  /// Until none is left. The context must be current.
  void work() {
    for (std::size_t i = next_++; i < report_.kernels.size(); i = next_++) {
      if (!report_.kernels[i].was_loaded && !report_.kernels[i].error) load(report_.kernels[i]);
    }
  }

  /// The same on a thread of its own. A thread that cannot have the context leaves the kernels to
  /// the others.
  void work_elsewhere() {
    const driver::DriverTable& table = driver_.table();
    if (table.cuCtxPushCurrent(context_.handle) != cuda::CUDA_SUCCESS) return;
    ++num_threads_;
    work();
    cuda::CUcontext popped = nullptr;
    table.cuCtxPopCurrent(&popped);
  }

  unsigned num_threads() const { return num_threads_; }

 private:
  void load(PreparedKernel& kernel) {
    const auto start = std::chrono::steady_clock::now();
    try {
      const auto loaded = modules_.load(*kernel.record, context_, nullptr);
      if (!loaded) kernel.error = loaded.error();
    } catch (const std::bad_alloc&) {  // must not leave a thread
      kernel.error = Error(StatusCode::kOutOfMemory, "out of memory");
    }
    kernel.milliseconds = milliseconds_since(start);
  }

  driver::Driver& driver_;
  ModuleCache& modules_;
  const ContextInfo& context_;
  PrepareReport& report_;
  std::atomic<std::size_t> next_{0};
  std::atomic<unsigned> num_threads_{1};
};

/// How many threads, the caller's included.
std::size_t useful_threads(std::size_t num_kernels, unsigned num_threads) {
  if (num_threads == 0) {
    num_threads = std::min(std::max(1U, std::thread::hardware_concurrency()), kMaxPrepareThreads);
  }
  return std::min<std::size_t>(num_threads, std::max<std::size_t>(1, num_kernels));
}

}  // namespace

std::size_t PrepareReport::num_failed() const {
  return static_cast<std::size_t>(
      std::count_if(kernels.begin(), kernels.end(),
                    [](const PreparedKernel& kernel) { return kernel.error.has_value(); }));
}

std::size_t PrepareReport::num_present() const {
  return static_cast<std::size_t>(std::count_if(
      kernels.begin(), kernels.end(),
      [](const PreparedKernel& kernel) { return kernel.was_loaded && !kernel.error; }));
}

std::size_t PrepareReport::num_loaded() const {
  return kernels.size() - num_failed() - num_present();
}

Status PrepareReport::status() const {
  const std::size_t failed = num_failed();
  if (failed == 0) return {};
  const auto first = std::find_if(kernels.begin(), kernels.end(), [](const PreparedKernel& kernel) {
    return kernel.error.has_value();
  });
  std::string message = first->error->message();
  if (failed > 1)
    message += fmt::format(" (and {} more of {} kernels)", failed - 1, kernels.size());
  return fail(first->error->code(), "{}", message);
}

Result<PrepareReport> Launcher::prepare(std::span<const KernelRecord* const> records,
                                        unsigned num_threads, const BringKernels& bring) {
  const auto start = std::chrono::steady_clock::now();
  CUBIST_ASSIGN_OR_RETURN(const ContextInfo* context, contexts_.current(*driver_));
  PrepareReport report;
  report.kernels.resize(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) report.kernels[i].record = records[i];
  PrepareRun run(*driver_, modules_, *context, report);
  const std::vector<const KernelRecord*> wanted =
      run.sort_out([this](const KernelRecord& record) { return min_driver_of(record); });
  if (bring && !wanted.empty()) {
    Status brought = bring(wanted);
    report.bring_milliseconds = milliseconds_since(start);
    if (!brought && brought.error().code() == StatusCode::kInterrupted) {
      return forward_error(brought);
    }
  }
  on_threads(useful_threads(wanted.size(), num_threads), [&run](unsigned number) {
    if (number == 0) {
      run.work();
    } else {
      run.work_elsewhere();
    }
  });
  report.num_threads = run.num_threads();
  report.milliseconds = milliseconds_since(start);
  return report;
}

}  // namespace cubist::launcher
