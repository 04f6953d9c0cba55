#pragma once

#include <cstdint>
#include <optional>

#include "cubin/cubin_file.h"

namespace cubist {

/// The oldest CUDA version whose drivers are documented to run the cubin, as cuDriverGetVersion
/// numbers it: the first of its tools' major release. Nothing where the file does not name its
/// tools, or names ones older than CUDA 11, for which another rule holds.
/// Source: CUDA Compatibility, "Minor Version Compatibility", table 1. What else a kernel may need
/// of a driver (to know its GPU) a driver shows by showing the GPU.
std::optional<std::int32_t> min_driver_of(const CubinFile& cubin);

}  // namespace cubist
