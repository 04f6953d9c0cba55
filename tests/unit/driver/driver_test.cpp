#include "driver/driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>
#include <vector>

#include "support/catch.h"
#include "support/fake_libcuda.h"

using namespace cubist;
using Catch::Matchers::Contains;
using cubist::testing::fake_cuda;

namespace {

std::shared_ptr<driver::Driver> open_fake() {
  fake_cuda().reset();
  auto opened = driver::Driver::open({cubist::testing::fake_libcuda_path()});
  REQUIRE(opened.has_value());
  return *opened;
}

/// Exit status of `body` run in a forked child.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
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
  CHECK(in_child([&] {
          const Status status = driver->init();
          return status ? 0 : static_cast<int>(status.error().code());
        }) == static_cast<int>(StatusCode::kForked));
  CHECK(driver->init().has_value());
}

TEST_CASE("a child forked before any cuInit initialises for itself") {
  const auto driver = open_fake();
  CHECK(in_child([&] { return driver->init().has_value() ? 0 : 1; }) == 0);
}

TEST_CASE("a cuInit by another library before the fork is recognised in the child") {
  const auto other_library = open_fake();
  REQUIRE(other_library->init().has_value());
  CHECK(in_child([] {
          const auto ours = driver::Driver::open({cubist::testing::fake_libcuda_path()});
          const Status status = (*ours)->init();
          return status ? 0 : static_cast<int>(status.error().code());
        }) == static_cast<int>(StatusCode::kForked));
}
