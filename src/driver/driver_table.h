#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "driver/cuda_abi.h"

namespace cubist::driver {

// The driver's own names, in scope for the signatures in symbols.def.
using namespace cubist::cuda;  // NOLINT(google-build-using-namespace)

/// The driver's functions as pointers, one field a row of symbols.def. Plain data, read-only once
/// filled; OPTIONAL rows may be null. The library stays open for the life of the process, since
/// closing libcuda while its threads run is not safe.
struct DriverTable {
#define CUBIST_DRIVER_SYMBOL(need, name, parameters) CUresult(*name) parameters = nullptr;
#include "driver/symbols.def"
#undef CUBIST_DRIVER_SYMBOL

  std::string library;     ///< the name that dlopen accepted
  int driver_version = 0;  ///< 1000 * major + 10 * minor: 13000 is CUDA 13.0
};

/// CUDA version whose signatures are asked for, in the driver's own numbering.
inline constexpr int kPinnedCudaVersion = 12000;

/// The names to try: CUBIST_LIBCUDA alone where that is set and not empty, else libcuda.so.1 and
/// libcuda.so.
std::vector<std::string> libcuda_names();

/// Opens the first of `names` that loads and fills the table. Calls no driver function but
/// cuDriverGetVersion and cuGetProcAddress; in particular not cuInit.
///
/// errors  kDriverUnavailable: none loads (the message has each name with the loader's reason), the
///         driver is older than kPinnedCudaVersion, or a REQUIRED function is missing
Result<DriverTable> load_driver_table(const std::vector<std::string>& names);

}  // namespace cubist::driver
