#include "driver/driver.h"

#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/child.h"
#include "support/fake_libcuda.h"

using namespace cubist;
using Catch::Matchers::Contains;
using cubist::test::fake_cuda;
using cubist::test::in_child;

namespace {

std::shared_ptr<driver::Driver> open_fake() {
  fake_cuda().reset();
  auto opened = driver::Driver::open({cubist::test::fake_libcuda_path()});
  REQUIRE(opened.has_value());
  return *opened;
}

/// The code of a failure, as text; "ok" without one. For a child process to report.
std::string code_of(const Status& status) {
  return status ? "ok" : std::string(to_string(status.error().code()));
}

}  // namespace

TEST_CASE("opening the driver does not initialise it") {
  const auto driver = open_fake();
  CHECK(fake_cuda().count("cuInit") == 0);
  CHECK_FALSE(driver->usable());
}

TEST_CASE("cuInit is called once, by any number of threads") {
  const auto driver = open_fake();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { static_cast<void>(driver->init()); });
  for (std::thread& thread : threads) thread.join();
  CHECK(driver->init().has_value());
  CHECK(driver->usable());
  CHECK(fake_cuda().count("cuInit") == 1);
}

TEST_CASE("a failed cuInit is tried again by the next call") {
  const auto driver = open_fake();
  fake_cuda().fail_nth(1, cuda::CUDA_ERROR_SYSTEM_NOT_READY);
  const Status first = driver->init();
  REQUIRE_FALSE(first.has_value());
  CHECK(first.error().code() == StatusCode::kDriverUnavailable);
  CHECK(driver->init().has_value());
}

TEST_CASE("a machine without a device is told so") {
  const auto driver = open_fake();
  fake_cuda().set_devices({});
  const Status status = driver->init();
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code() == StatusCode::kDriverUnavailable);
  CHECK_THAT(status.error().message(), Contains("CUDA_VISIBLE_DEVICES"));
}

TEST_CASE("a forked child of an initialised process gets its own error") {
  const auto driver = open_fake();
  REQUIRE(driver->init().has_value());
  CHECK(in_child([&] { return code_of(driver->init()); }) == "forked");
  CHECK(driver->init().has_value());
}

TEST_CASE("a child forked before any cuInit initialises for itself") {
  const auto driver = open_fake();
  CHECK(in_child([&] { return code_of(driver->init()); }) == "ok");
}

TEST_CASE("a cuInit by another library before the fork is recognised in the child") {
  const auto other_library = open_fake();
  REQUIRE(other_library->init().has_value());
  CHECK(in_child([] {
          const auto ours = driver::Driver::open({cubist::test::fake_libcuda_path()});
          return code_of((*ours)->init());
        }) == "forked");
}
