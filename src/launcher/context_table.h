#pragma once

#include <cstdint>
#include <mutex>

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/context_list.h"
#include "model/device_profile.h"

namespace cubist::launcher {

/// A CUDA context a launch happened in, and the device behind it.
struct ContextInfo {
  cuda::CUcontext handle = nullptr;
  std::uint64_t id = 0;  ///< cuCtxGetId: unique for the life of the process
  int ordinal = 0;
  DeviceProfile profile;
  int driver_version = 0;  ///< cuDriverGetVersion: 13000 is CUDA 13.0
};

/// Knows every context it was asked in. Safe from any thread.
class ContextTable {
 public:
  /// The context current on the calling thread: one driver call if it was seen before. Calls cuInit
  /// where nobody did.
  ///
  /// errors  kForked, kDriverUnavailable (see Driver::init); kDriverError: no context is current,
  /// or
  ///         it was destroyed
  Result<const ContextInfo*> current(driver::Driver& driver);

 private:
  Result<const ContextInfo*> add_current(driver::Driver& driver, std::uint64_t id);

  ContextList<ContextInfo> seen_;
  std::mutex mutex_;
};

}  // namespace cubist::launcher
