#pragma once

#include "base/result.h"
#include "model/enums.h"
#include "model/kernel_record.h"
#include "model/verified_cubin.h"

namespace cubist::runtime {

/// Whether the kernel takes a parameter block of the layout's size, by what the cubin says of
/// itself: a driver copies as many bytes as the cubin declares, whatever the launch has.
///
/// errors  kManifestInvalid: another size, or a layout that no launch can fill; names both sizes
///         kIntegrity: the cubin's structure is broken
Status check_param_bytes(const VerifiedCubin& cubin, const KernelRecord& record,
                         ParamLayout layout);

}  // namespace cubist::runtime
