#pragma once

#include "base/result.h"
#include "driver/driver.h"
#include "launcher/tensor_map_spec.h"

namespace cubist::launcher {

/// Checks a descriptor by our own rules (check_tensor_map), then has the driver encode it.
///
/// out     128 bytes aligned to 64; untouched unless it succeeds
/// errors  kInvalidArgument: names tensor and rule; kDriverError: the driver refuses it
Status encode_tensor_map(const driver::Driver& driver, const TensorMapSpec& spec, void* out);

}  // namespace cubist::launcher
