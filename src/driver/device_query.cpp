#include "driver/device_query.h"

#include <array>

namespace cubist::driver {
namespace {

Result<int> attribute(const Driver& driver, CUdevice_attribute which, CUdevice device) {
  int value = 0;
  CUBIST_RETURN_IF_ERROR(driver.check(driver.table().cuDeviceGetAttribute(&value, which, device),
                                      "cuDeviceGetAttribute"));
  return value;
}

Result<DeviceProfile> profile_of(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  CUBIST_RETURN_IF_ERROR(driver.check(driver.table().cuDeviceGet(&device, ordinal), "cuDeviceGet"));
  std::array<char, 256> name{};
  CUBIST_RETURN_IF_ERROR(driver.check(
      driver.table().cuDeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device),
      "cuDeviceGetName"));
  CUBIST_ASSIGN_OR_RETURN(const int major,
                          attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  CUBIST_ASSIGN_OR_RETURN(const int minor,
                          attribute(driver, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  CUBIST_ASSIGN_OR_RETURN(const int num_sms,
                          attribute(driver, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
  CUBIST_ASSIGN_OR_RETURN(
      const int smem,
      attribute(driver, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));

  DeviceProfile profile;
  profile.name = name.data();
  profile.sm = static_cast<std::uint32_t>(major * 10 + minor);
  profile.num_sms = num_sms;
  profile.max_smem_optin = static_cast<std::uint32_t>(smem);
  return profile;
}

}  // namespace

Result<int> count_devices(Driver& driver) {
  CUBIST_RETURN_IF_ERROR(driver.init());
  int count = 0;
  CUBIST_RETURN_IF_ERROR(driver.check(driver.table().cuDeviceGetCount(&count), "cuDeviceGetCount"));
  return count;
}

Result<DeviceProfile> query_device(Driver& driver, int ordinal) {
  CUBIST_ASSIGN_OR_RETURN(const int count, count_devices(driver));
  if (ordinal < 0 || ordinal >= count) {
    return fail(StatusCode::kInvalidArgument,
                "device {} does not exist: the driver shows {} device(s), counted from 0", ordinal,
                count);
  }
  return profile_of(driver, ordinal);
}

Result<std::vector<DeviceProfile>> query_devices(Driver& driver) {
  CUBIST_ASSIGN_OR_RETURN(const int count, count_devices(driver));
  std::vector<DeviceProfile> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    CUBIST_ASSIGN_OR_RETURN(DeviceProfile device, profile_of(driver, ordinal));
    devices.push_back(std::move(device));
  }
  return devices;
}

}  // namespace cubist::driver
