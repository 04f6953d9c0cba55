#include "driver/device_query.h"

#include "support/catch.h"
#include "support/fake_libcuda.h"

using namespace cubist;
using Catch::Matchers::Contains;
using cubist::test::fake_cuda;

namespace {

std::shared_ptr<driver::Driver> open_fake() {
  fake_cuda().reset();
  return *driver::Driver::open({cubist::test::fake_libcuda_path()});
}

}  // namespace

TEST_CASE("a device profile carries what selection needs") {
  const auto driver = open_fake();
  fake_cuda().set_devices({{"Fake H200", 90, 132, 232448}, {"Fake B200", 100, 148, 232449}});
  const auto profile = driver::query_device(*driver, 1);
  REQUIRE(profile.has_value());
  CHECK(profile->name == "Fake B200");
  CHECK(profile->sm == 100);
  CHECK(profile->num_sms == 148);
  CHECK(profile->max_smem_optin == 232449);
  CHECK(profile->max_active_clusters[8] == -1);
}

TEST_CASE("a query makes no context and loads nothing") {
  const auto driver = open_fake();
  REQUIRE(driver::query_devices(*driver).has_value());
  CHECK(fake_cuda().count("cuDevicePrimaryCtxRetain") == 0);
  CHECK(fake_cuda().count("cuInit") == 1);
  CHECK(fake_cuda().leaks() == cubist::test::FakeLeaks{});
}

TEST_CASE("an ordinal that does not exist is refused with the count") {
  const auto driver = open_fake();
  for (const int ordinal : {-1, 1, 1000}) {
    const auto profile = driver::query_device(*driver, ordinal);
    REQUIRE_FALSE(profile.has_value());
    CHECK(profile.error().code() == StatusCode::kInvalidArgument);
    CHECK_THAT(profile.error().message(), Contains("the driver shows 1 device(s)"));
  }
}

TEST_CASE("an error at any call of a query is reported and the next query works") {
  const auto driver = open_fake();
  REQUIRE(driver::query_device(*driver, 0).has_value());
  fake_cuda().forget_calls();
  REQUIRE(driver::query_device(*driver, 0).has_value());
  const int calls = static_cast<int>(fake_cuda().calls().size());
  REQUIRE(calls >= 6);
  for (int nth = 1; nth <= calls; ++nth) {
    fake_cuda().fail_nth(nth, cuda::CUDA_ERROR_UNKNOWN);
    const auto failed = driver::query_device(*driver, 0);
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().code() == StatusCode::kDriverError);
    CHECK_THAT(failed.error().message(), Contains("(999)"));
    CHECK(driver::query_device(*driver, 0).has_value());
  }
}
