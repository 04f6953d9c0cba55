#include "registry/retry.h"

#include "support/catch.h"

using cubist::is_retryable_status;
using cubist::retry_delay;
using cubist::RetryPolicy;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("timeouts, overload and server faults are worth another try; refusals are not") {
  for (const int status : {408, 429, 500, 502, 503, 504, 599}) CHECK(is_retryable_status(status));
  for (const int status : {200, 301, 400, 401, 403, 404, 410, 416, 600}) {
    CHECK_FALSE(is_retryable_status(status));
  }
}

TEST_CASE("pauses double up to the cap, a random half of each") {
  const RetryPolicy policy{10, milliseconds(100), milliseconds(1'000), seconds(60)};
  CHECK(retry_delay(policy, 1, std::nullopt, 0.0) == milliseconds(50));
  CHECK(retry_delay(policy, 1, std::nullopt, 1.0) == milliseconds(100));
  CHECK(retry_delay(policy, 3, std::nullopt, 1.0) == milliseconds(400));
  CHECK(retry_delay(policy, 9, std::nullopt, 1.0) == milliseconds(1'000));
  CHECK(retry_delay(policy, 9, std::nullopt, 0.0) == milliseconds(500));
}

TEST_CASE("after the last try there is no pause, and a pause that is too long is not made") {
  const RetryPolicy policy{4, milliseconds(100), milliseconds(1'000), seconds(60)};
  CHECK(retry_delay(policy, 3, std::nullopt, 0.5));
  CHECK_FALSE(retry_delay(policy, 4, std::nullopt, 0.5));
  CHECK(retry_delay(policy, 1, seconds(60), 0.5) == seconds(60));
  CHECK(retry_delay(policy, 1, seconds(0), 1.0) == milliseconds(100));
  CHECK_FALSE(retry_delay(policy, 1, seconds(61), 0.5));
}
