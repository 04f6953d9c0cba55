#include "driver/driver_status.h"

#include "support/catch.h"
#include "support/fake_libcuda.h"

using namespace cubist;
using Catch::Matchers::Contains;

namespace {

const driver::DriverTable& table() {
  static const auto loaded = driver::load_driver_table({cubist::test::fake_libcuda_path()});
  return *loaded;
}

Status check(int result, std::string_view call) {
  return driver::check_driver(table(), static_cast<cuda::CUresult>(result), call);
}

}  // namespace

TEST_CASE("success is ok") { CHECK(check(0, "cuInit").has_value()); }

TEST_CASE("a failed call keeps its name, the error's name, number and sentence") {
  const Status status = check(2, "cuModuleLoadData");
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code() == StatusCode::kDriverError);
  CHECK_THAT(
      status.error().message(),
      Contains("cuModuleLoadData failed: CUDA_ERROR_OUT_OF_MEMORY (2): the stand-in's words"));
  CHECK_THAT(status.error().message(), Contains("before the large allocations"));
}

TEST_CASE("an error the driver has no name for still has its number") {
  const Status status = check(12345, "cuLaunchKernelEx");
  REQUIRE_FALSE(status.has_value());
  CHECK_THAT(status.error().message(), Contains("an error without a name (12345)"));
}

TEST_CASE("CUDA errors fall into our groups") {
  const auto code = [](int result, std::string_view call) {
    return check(result, call).error().code();
  };
  for (const int result : {34, 46, 100, 802, 803, 804}) {
    CHECK(code(result, "cuInit") == StatusCode::kDriverUnavailable);
  }
  for (const int result : {209, 222}) {
    CHECK(code(result, "cuModuleLoadData") == StatusCode::kDeviceMismatch);
  }
  for (int result = 900; result <= 908; ++result) {
    CHECK(code(result, "cuLaunchKernelEx") == StatusCode::kCapture);
  }
  CHECK(code(3, "cuInit") == StatusCode::kForked);
  CHECK(code(3, "cuCtxGetId") == StatusCode::kDriverError);
}

TEST_CASE("every CUDA error becomes a failure with a message") {
  for (const int result : cubist::test::all_cuda_errors()) {
    const Status status = check(result, "cuLaunchKernelEx");
    REQUIRE_FALSE(status.has_value());
    CHECK(status.error().code() != StatusCode::kOk);
    CHECK_THAT(status.error().message(), Contains("(" + std::to_string(result) + ")"));
  }
}
