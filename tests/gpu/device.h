#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "driver/driver.h"
#include "model/device_profile.h"

namespace cubist::test {

/// The first GPU of the machine and its primary context, for GPU tests; every failure of a call
/// ends the program, since no test can go on without it.
class Device {
 public:
  /// Null, with the reason on standard error, where there is no driver or no GPU.
  static std::unique_ptr<Device> open();
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const driver::DriverTable& table() const { return driver_->table(); }
  const std::shared_ptr<driver::Driver>& driver() const { return driver_; }
  /// Makes the context that of the calling thread.
  void make_current() const;
  void check(cuda::CUresult result, const char* call) const;
  void synchronize() const { check(table().cuStreamSynchronize(nullptr), "cuStreamSynchronize"); }
  const DeviceProfile& profile() const { return profile_; }

 private:
  Device() = default;

  std::shared_ptr<driver::Driver> driver_;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
  DeviceProfile profile_;
};

/// Device memory, 256-byte aligned as the driver gives it. Never empty.
class DeviceBuffer {
 public:
  DeviceBuffer(const Device& device, std::size_t bytes);
  template <class T>
  DeviceBuffer(const Device& device, const std::vector<T>& host)
      : DeviceBuffer(device, host.size() * sizeof(T)) {
    upload(host.data(), host.size() * sizeof(T));
  }
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* pointer() const { return reinterpret_cast<void*>(address_); }
  template <class T>
  T* as(std::size_t offset = 0) const {
    return reinterpret_cast<T*>(address_) + offset;
  }
  void upload(const void* from, std::size_t bytes);
  void fill(unsigned char byte);
  template <class T>
  std::vector<T> download() const {
    std::vector<T> host(bytes_ / sizeof(T));
    device_.check(device_.table().cuMemcpyDtoH(host.data(), address_, host.size() * sizeof(T)),
                  "cuMemcpyDtoH");
    return host;
  }

 private:
  const Device& device_;
  std::size_t bytes_;
  cuda::CUdeviceptr address_ = 0;
};

}  // namespace cubist::test
