#include "launcher/context_table.h"

#include "driver/device_query.h"

namespace cubist::launcher {

Result<const ContextInfo*> ContextTable::current(driver::Driver& driver) {
  CUBIST_RETURN_IF_ERROR(driver.init());
  unsigned long long id = 0;
  CUBIST_RETURN_IF_ERROR(driver.check(driver.table().cuCtxGetId(nullptr, &id), "cuCtxGetId"));
  if (const ContextInfo* found = seen_.find(id)) return found;
  return add_current(driver, id);
}

Result<const ContextInfo*> ContextTable::add_current(driver::Driver& driver, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (const ContextInfo* found = seen_.find(id)) return found;
  ContextInfo info;
  info.id = id;
  info.driver_version = driver.table().driver_version;
  CUBIST_RETURN_IF_ERROR(
      driver.check(driver.table().cuCtxGetCurrent(&info.handle), "cuCtxGetCurrent"));
  cuda::CUdevice device = 0;
  CUBIST_RETURN_IF_ERROR(driver.check(driver.table().cuCtxGetDevice(&device), "cuCtxGetDevice"));
  // A CUdevice is the device's ordinal.
  info.ordinal = device;
  CUBIST_ASSIGN_OR_RETURN(info.profile, driver::query_device(driver, info.ordinal));
  return &seen_.add(id, std::move(info));
}

}  // namespace cubist::launcher
