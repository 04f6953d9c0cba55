#include "bundle/verify_kernels.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/threads.h"

namespace cubist::bundle {

Status verify_kernels(const Bundle& bundle, unsigned threads, const std::atomic<bool>* cancel,
                      const std::function<void(std::size_t)>& progress) {
  const std::size_t count = bundle.description().kernels.size();
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> done = 0;
  std::mutex mutex;
  std::size_t failed_at = count;  // of the lowest kernel that failed, and why
  std::optional<Error> error;
  const auto stopped = [&] { return cancel != nullptr && *cancel; };
  on_threads(std::min<std::size_t>(threads, count), [&](unsigned number) {
    for (std::size_t i = next++; i < count && !stopped(); i = next++) {
      const auto cubin = bundle.read_kernel(i);
      ++done;
      if (number == 0 && progress) progress(done);
      if (cubin) continue;
      next = count;  // those before it are with other threads already
      const std::lock_guard lock(mutex);
      if (i < failed_at) {
        failed_at = i;
        error = cubin.error();
      }
    }
  });
  if (error) return tl::unexpected<Error>(std::move(*error));
  if (stopped()) return fail(StatusCode::kInterrupted, "stopped; not every kernel was hashed");
  return {};
}

}  // namespace cubist::bundle
