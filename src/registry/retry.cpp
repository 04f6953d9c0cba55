#include "registry/retry.h"

#include <algorithm>
#include <cmath>

namespace cubist {

bool is_retryable_status(int status) {
  return status == 408 || status == 429 || (status >= 500 && status <= 599);
}

std::optional<std::chrono::milliseconds> retry_delay(
    const RetryPolicy& policy, int failed_tries, std::optional<std::chrono::seconds> retry_after,
    double random) {
  if (failed_tries >= policy.max_tries) return std::nullopt;
  if (retry_after && *retry_after > policy.max_retry_after) return std::nullopt;
  const double doubled =
      static_cast<double>(policy.base.count()) * std::exp2(std::max(0, failed_tries - 1));
  const double most = std::min(doubled, static_cast<double>(policy.cap.count()));
  const std::chrono::milliseconds delay(
      static_cast<std::int64_t>(most * (0.5 + 0.5 * std::clamp(random, 0.0, 1.0))));
  if (!retry_after) return delay;
  return std::max(delay, std::chrono::duration_cast<std::chrono::milliseconds>(*retry_after));
}

}  // namespace cubist
