#include "gpu/device.h"

#include <cstdio>
#include <cstdlib>

#include "driver/device_query.h"

namespace cubist::test {

using namespace cubist::cuda;  // NOLINT(google-build-using-namespace)

std::unique_ptr<Device> Device::open() {
  Result<std::shared_ptr<driver::Driver>> opened = driver::Driver::open();
  if (!opened) {
    std::fprintf(stderr, "no GPU test: %s\n", opened.error().message().c_str());
    return nullptr;
  }
  std::unique_ptr<Device> device(new Device);
  device->driver_ = *opened;
  if (const Status status = device->driver_->init(); !status) {
    std::fprintf(stderr, "no GPU test: %s\n", status.error().message().c_str());
    return nullptr;
  }
  const driver::DriverTable& table = device->table();
  device->check(table.cuDeviceGet(&device->device_, 0), "cuDeviceGet");
  Result<DeviceProfile> profile = driver::query_device(*device->driver_, 0);
  if (!profile) {
    std::fprintf(stderr, "no GPU test: %s\n", profile.error().message().c_str());
    return nullptr;
  }
  device->profile_ = *profile;
  device->check(table.cuDevicePrimaryCtxRetain(&device->context_, device->device_),
                "cuDevicePrimaryCtxRetain");
  device->make_current();
  return device;
}

Device::~Device() { table().cuDevicePrimaryCtxRelease(device_); }

void Device::make_current() const { check(table().cuCtxPushCurrent(context_), "cuCtxPushCurrent"); }

void Device::check(CUresult result, const char* call) const {
  if (result == CUDA_SUCCESS) return;
  const char* text = "?";
  table().cuGetErrorString(result, &text);
  std::fprintf(stderr, "%s: error %d, %s\n", call, static_cast<int>(result), text);
  std::exit(EXIT_FAILURE);
}

DeviceBuffer::DeviceBuffer(const Device& device, std::size_t bytes)
    : device_(device), bytes_(bytes) {
  device.check(device.table().cuMemAlloc(&address_, bytes == 0 ? 1 : bytes), "cuMemAlloc");
}

DeviceBuffer::~DeviceBuffer() { device_.table().cuMemFree(address_); }

void DeviceBuffer::upload(const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  device_.check(device_.table().cuMemcpyHtoD(address_, from, bytes), "cuMemcpyHtoD");
}

void DeviceBuffer::fill(unsigned char byte) {
  if (bytes_ == 0) return;
  device_.check(device_.table().cuMemsetD8Async(address_, byte, bytes_, nullptr),
                "cuMemsetD8Async");
}

}  // namespace cubist::test
