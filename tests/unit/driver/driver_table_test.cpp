#include "driver/driver_table.h"

#include "support/catch.h"
#include "support/environment.h"
#include "support/fake_libcuda.h"

using namespace cubist;
using Catch::Matchers::Contains;
using cubist::test::Environment;
using cubist::test::fake_cuda;
using cubist::test::fake_libcuda_path;

namespace {

std::string failure_message(const std::vector<std::string>& names) {
  auto table = driver::load_driver_table(names);
  REQUIRE_FALSE(table.has_value());
  CHECK(table.error().code() == StatusCode::kDriverUnavailable);
  return table.error().message();
}

}  // namespace

TEST_CASE("a machine without libcuda hears every name that was tried and the loader's reason") {
  const std::string message = failure_message({"libcuda-none.so.1", "/no/such/libcuda.so"});
  CHECK_THAT(message, Contains("'libcuda-none.so.1'"));
  CHECK_THAT(message, Contains("'/no/such/libcuda.so'"));
  CHECK_THAT(message, Contains("cannot open shared object file"));
  CHECK_THAT(message, Contains("Install the NVIDIA driver"));
}

TEST_CASE("the second name serves where the first does not load") {
  const auto table = driver::load_driver_table({"libcuda-none.so.1", fake_libcuda_path()});
  REQUIRE(table.has_value());
  CHECK(table->library == fake_libcuda_path());
}

TEST_CASE("by default libcuda.so.1 is tried before libcuda.so") {
  const Environment env(Environment::Values{{"CUBIST_LIBCUDA", std::nullopt}});
  CHECK(driver::libcuda_names() == std::vector<std::string>{"libcuda.so.1", "libcuda.so"});
}

TEST_CASE("CUBIST_LIBCUDA replaces the names, unless it is empty") {
  {
    const Environment env(Environment::Values{{"CUBIST_LIBCUDA", "/opt/libcuda.so.1"}});
    CHECK(driver::libcuda_names() == std::vector<std::string>{"/opt/libcuda.so.1"});
  }
  const Environment env(Environment::Values{{"CUBIST_LIBCUDA", ""}});
  CHECK(driver::libcuda_names().size() == 2);
}

TEST_CASE("loading the table calls no driver function and fills every field") {
  fake_cuda().reset();
  const auto table = driver::load_driver_table({fake_libcuda_path()});
  REQUIRE(table.has_value());
  CHECK(fake_cuda().calls().empty());
  CHECK(table->driver_version == 13000);
#define CUBIST_DRIVER_SYMBOL(need, name, parameters) CHECK(table->name != nullptr);
#include "driver/symbols.def"
#undef CUBIST_DRIVER_SYMBOL
}

TEST_CASE("a library that is no CUDA driver is refused by name") {
  CHECK_THAT(failure_message({"libm.so.6"}), Contains("'libm.so.6' is no CUDA driver library"));
}

TEST_CASE("a driver older than CUDA 12.0 is refused with both versions") {
  const Environment env(Environment::Values{{"CUBIST_FAKE_CUDA_VERSION", "11080"}});
  const std::string message = failure_message({fake_libcuda_path()});
  CHECK_THAT(message, Contains("supports CUDA 11.8"));
  CHECK_THAT(message, Contains("12.0 or later is needed"));
}

TEST_CASE("a driver without a required function is refused with the function's name") {
  const Environment env(Environment::Values{{"CUBIST_FAKE_CUDA_HIDE", "cuLaunchKernelEx"}});
  CHECK_THAT(failure_message({fake_libcuda_path()}), Contains("no function cuLaunchKernelEx"));
}

TEST_CASE("an optional function may be missing and is null then") {
  const Environment env(Environment::Values{
      {"CUBIST_FAKE_CUDA_HIDE", "cuThreadExchangeStreamCaptureMode,cuEventCreate"}});
  const auto table = driver::load_driver_table({fake_libcuda_path()});
  REQUIRE(table.has_value());
  CHECK(table->cuThreadExchangeStreamCaptureMode == nullptr);
  CHECK(table->cuEventCreate == nullptr);
  CHECK(table->cuEventRecord != nullptr);
}
