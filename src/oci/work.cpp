#include "oci/work.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>

#include "base/threads.h"

namespace cubist::oci {

Status in_parallel(std::size_t count, unsigned threads,
                   const std::function<Status(std::size_t, unsigned)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::optional<Error> failure;
  const auto run = [&](unsigned thread) {
    for (std::size_t i = next++; i < count; i = next++) {
      Status done = work(i, thread);
      if (done) continue;
      next = count;
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::move(done.error());
    }
  };
  on_threads(std::min<std::size_t>(threads, count), run);
  if (failure) return tl::unexpected<Error>(std::move(*failure));
  return {};
}

}  // namespace cubist::oci
