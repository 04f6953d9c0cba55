#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "driver/driver.h"
#include "model/device_profile.h"

namespace cubist::tools {

/// The primary context of one GPU, current on the thread that opened it, and device memory that
/// goes with it. For one thread.
class GpuSession {
 public:
  /// errors  kInvalidArgument: no such ordinal; what the driver answers
  static Result<std::unique_ptr<GpuSession>> open(driver::Driver& driver, int ordinal);
  ~GpuSession();
  GpuSession(const GpuSession&) = delete;
  GpuSession& operator=(const GpuSession&) = delete;

  /// Device memory that lives as long as the session; 0 for no bytes.
  Result<std::uint64_t> allocate(std::uint64_t bytes);
  Result<std::uint64_t> upload(const void* from, std::uint64_t bytes);
  template <class T>
  Result<std::uint64_t> upload(const std::vector<T>& host) {
    return upload(host.data(), host.size() * sizeof(T));
  }
  /// Waits for what was queued before.
  Status download(void* to, std::uint64_t from, std::uint64_t bytes);
  template <class T>
  Result<std::vector<T>> download(std::uint64_t from, std::uint64_t count) {
    std::vector<T> host(count);
    CUBIST_RETURN_IF_ERROR(download(host.data(), from, count * sizeof(T)));
    return host;
  }
  Status fill(std::uint64_t address, std::uint8_t byte, std::uint64_t bytes);
  Status synchronize();

  /// Microseconds of GPU time from before to after what `queue` puts on the default stream; -1
  /// where the driver has no events.
  Result<double> time(const std::function<Status()>& queue);

 private:
  GpuSession(driver::Driver& driver, int ordinal) : driver_(driver), ordinal_(ordinal) {}
  Status start();

  driver::Driver& driver_;
  int ordinal_;
  bool retained_ = false;
  bool pushed_ = false;
  std::vector<cuda::CUdeviceptr> allocations_;
};

/// A GPU of this machine, opened for a command. Declared before a runtime, since driver and context
/// have to outlive it: modules are unloaded before the context goes.
struct OpenGpu {
  std::shared_ptr<driver::Driver> driver;
  DeviceProfile device;
  std::unique_ptr<GpuSession> session;
};

/// errors  those of Driver::open, query_device and GpuSession::open
Result<OpenGpu> open_gpu(int ordinal);

}  // namespace cubist::tools
