#include <memory>
#include <mutex>

#include "capi/guard.h"
#include "capi/structs.h"
#include "driver/device_query.h"

using namespace cubist;
using namespace cubist::capi;

namespace {

/// The process's driver for queries, opened by the first that finds one.
Result<std::shared_ptr<driver::Driver>> query_driver() {
  static std::mutex mutex;
  static auto* opened = new std::shared_ptr<driver::Driver>;
  const std::lock_guard lock(mutex);
  if (*opened == nullptr) {
    CUBIST_ASSIGN_OR_RETURN(*opened, driver::Driver::open());
  }
  return *opened;
}

}  // namespace

cubist_status cubist_device_count(int32_t* out_count) {
  if (out_count != nullptr) *out_count = 0;
  return guard([&]() -> Status {
    if (out_count == nullptr) return fail(StatusCode::kInvalidArgument, "out_count is NULL");
    CUBIST_ASSIGN_OR_RETURN(const auto driver, query_driver());
    CUBIST_ASSIGN_OR_RETURN(*out_count, driver::count_devices(*driver));
    return {};
  });
}

cubist_status cubist_device_query(int32_t ordinal, cubist_device* out_device) {
  return guard([&]() -> Status {
    CUBIST_RETURN_IF_ERROR(check_struct(out_device, "out_device"));
    *out_device = CUBIST_DEVICE_INIT;
    out_device->sm = 0;
    out_device->num_sms = 0;
    out_device->max_smem_optin = 0;
    CUBIST_ASSIGN_OR_RETURN(const auto driver, query_driver());
    CUBIST_ASSIGN_OR_RETURN(const DeviceProfile device, driver::query_device(*driver, ordinal));
    to_c(device, *out_device);
    return {};
  });
}
