#include "launcher/module_cache.h"

#include <chrono>

#include "base/log.h"
#include "launcher/load_module.h"

namespace cubist::launcher {

ModuleCache::ModuleCache(std::shared_ptr<driver::Driver> driver, CubinSource source)
    : driver_(std::move(driver)), source_(std::move(source)) {}

ModuleCache::~ModuleCache() { unload_all(); }

KernelSlot& ModuleCache::slot(const KernelRecord& record) {
  const Key key{record.sha256, record.name};
  {
    const std::shared_lock lock(slots_mutex_);
    if (const auto found = slots_.find(key); found != slots_.end()) return *found->second;
  }
  const std::unique_lock lock(slots_mutex_);
  std::unique_ptr<KernelSlot>& made = slots_[key];
  if (made == nullptr) made = std::make_unique<KernelSlot>();
  return *made;
}

Result<const LoadedKernel*> ModuleCache::load(const KernelRecord& record,
                                              const ContextInfo& context,
                                              const cuda::CUstream* stream) {
  KernelSlot& slot = this->slot(record);
  if (const LoadedKernel* found = slot.find(context.id)) return found;
  if (stream != nullptr) CUBIST_RETURN_IF_ERROR(refuse_capture(record, *stream));

  const std::lock_guard lock(slot.mutex_);
  if (const LoadedKernel* found = slot.find(context.id)) return found;
  Result<LoadedKernel> loaded = load_now(record, context);
  if (!loaded) {
    failed_loads_.fetch_add(1, std::memory_order_relaxed);
    return forward_error(loaded);
  }
  loads_.fetch_add(1, std::memory_order_relaxed);
  return &slot.loaded_.add(context.id, *loaded);
}

Status ModuleCache::refuse_capture(const KernelRecord& record, cuda::CUstream stream) const {
  const std::string context = fmt::format(
      "kernel '{}' is not loaded in this CUDA context yet, and loading is not possible while the "
      "stream is being captured; prepare the selection before the capture begins",
      record.name);
  cuda::CUstreamCaptureStatus status = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
  Status asked =
      driver_->check(driver_->table().cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
  if (!asked) {
    if (asked.error().code() == StatusCode::kCapture) return forward_error(asked, context);
    return asked;
  }
  if (status == cuda::CU_STREAM_CAPTURE_STATUS_NONE) return {};
  return fail(StatusCode::kCapture, "{}", context);
}

Result<LoadedKernel> ModuleCache::load_now(const KernelRecord& record,
                                           const ContextInfo& context) const {
  CUBIST_ASSIGN_OR_RETURN(const VerifiedCubin cubin, source_(record));
  const auto start = std::chrono::steady_clock::now();
  Result<ModuleAndFunction> loaded = load_module(*driver_, cubin, record);
  const auto elapsed = std::chrono::steady_clock::now() - start;
  nanoseconds_.fetch_add(static_cast<std::uint64_t>(
                             std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count()),
                         std::memory_order_relaxed);
  if (!loaded) return forward_error(loaded);
  log(LogLevel::kDebug, "loaded '{}' on device {} in {} us", record.name, context.ordinal,
      std::chrono::duration_cast<std::chrono::microseconds>(elapsed).count());
  return LoadedKernel{context.handle, context.id, loaded->module, loaded->function};
}

LoadCounters ModuleCache::counters() const {
  return {loads_.load(std::memory_order_relaxed), failed_loads_.load(std::memory_order_relaxed),
          nanoseconds_.load(std::memory_order_relaxed)};
}

void ModuleCache::unload_all() {
  // A forked child, or a process in which nothing was launched, holds nothing that it may touch.
  if (!driver_->usable()) return;
  const driver::DriverTable& table = driver_->table();
  for (const auto& [key, slot] : slots_) {
    slot->loaded_.for_each([&](const LoadedKernel& kernel) {
      // A context that is gone took its modules with it; at its address another may live by now.
      unsigned long long id = 0;
      if (table.cuCtxGetId(kernel.context, &id) != cuda::CUDA_SUCCESS || id != kernel.context_id) {
        return;
      }
      if (table.cuCtxPushCurrent(kernel.context) != cuda::CUDA_SUCCESS) return;
      table.cuModuleUnload(kernel.module);
      table.cuCtxPopCurrent(nullptr);
    });
  }
}

}  // namespace cubist::launcher
