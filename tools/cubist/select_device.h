#pragma once

#include "base/status.h"
#include "model/device_profile.h"
#include "select_flags.h"
#include "selector/kernel_table.h"

namespace cubist::tools {

/// "device    b200, sm 100, 148 SMs (the default: --device names another)", on standard output.
void print_device(const DeviceProfile& device, const ProblemFlags& flags);

/// The refusal of a problem on this device. Where no pack has kernels for that device, it
/// also says what the packs are for, which --device would do, and whether the device was the
/// default one.
Error explain_miss(const selector::KernelTable& table, const DeviceProfile& device,
                   const ProblemFlags& flags, const Error& refusal);

}  // namespace cubist::tools
