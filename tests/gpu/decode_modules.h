#pragma once

#include <array>
#include <string>
#include <vector>

#include "gpu/decode_case.h"
#include "gpu/device.h"
#include "model/decode_params.h"

namespace cubist::test {

/// A decode kernel loaded into the device's context. Modules stay loaded until the process ends.
struct LoadedVariant {
  DecodeVariant variant;
  cuda::CUfunction function = nullptr;
};

/// The kernels of the manifest that run on the device and whose names contain `only`, each file
/// checked against its digest. Ends the program where one is missing or does not load.
std::vector<LoadedVariant> load_variants(const Device& device, const std::string& manifest,
                                         const std::string& only);

/// One launch on the default stream.
void launch(const Device& device, const LoadedVariant& kernel, const CubistDecodeParams& params,
            std::array<unsigned, 3> grid, bool pdl);

}  // namespace cubist::test
