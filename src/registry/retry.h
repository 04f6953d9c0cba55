#pragma once

#include <chrono>
#include <optional>

namespace cubist {

/// How often and how soon a request is made again.
struct RetryPolicy {
  int max_tries = 4;  ///< all in all, the first one included
  std::chrono::milliseconds base{500};
  std::chrono::milliseconds cap{20'000};
  /// A server that asks for a longer pause (Retry-After) is given up at once.
  std::chrono::milliseconds max_retry_after{60'000};
};

/// 408, 429 and 5xx: the same request may well succeed later. 403 and 404 will not.
bool is_retryable_status(int status);

/// The pause after `failed_tries` failures: base doubled each time up to cap, of which a random
/// part between a half and all (`random` in [0, 1)), so that a fleet does not come back in step.
/// What the server asked for is the least. Empty: do not try again.
std::optional<std::chrono::milliseconds> retry_delay(
    const RetryPolicy& policy, int failed_tries, std::optional<std::chrono::seconds> retry_after,
    double random);

}  // namespace cubist
