#pragma once

#include <vector>

#include "base/result.h"
#include "driver/driver.h"
#include "model/device_profile.h"

namespace cubist::driver {

/// How many devices the driver shows. Calls cuInit if nobody did.
Result<int> count_devices(Driver& driver);

/// What the driver says of one device. Calls cuInit if nobody did; makes no context.
///
/// errors  kInvalidArgument: no such ordinal (the message has the count); kDriverUnavailable;
/// kForked
Result<DeviceProfile> query_device(Driver& driver, int ordinal);

/// Every visible device, by ordinal; empty where the driver sees none.
Result<std::vector<DeviceProfile>> query_devices(Driver& driver);

}  // namespace cubist::driver
