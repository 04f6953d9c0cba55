#pragma once

#include <string_view>

#include "base/result.h"
#include "driver/driver_table.h"

namespace cubist::driver {

/// Turns what a driver call answered into a Status: "cuModuleLoadData failed: CUDA_ERROR_... (209):
/// <the driver's sentence>", and what to do where we know. The only place that reads a CUresult's
/// meaning.
///
/// errors  kDriverUnavailable  no usable device or driver (46, 100, 802, 803, 804, 34)
///         kDeviceMismatch     the cubin is not for this GPU or driver (209, 222)
///         kCapture            the call is not allowed while a stream is captured (900 to 908)
///         kForked             cuInit says "not initialized": what it does in a forked child
///         kDriverError        everything else
Status check_driver(const DriverTable& table, CUresult result, std::string_view call);

}  // namespace cubist::driver
