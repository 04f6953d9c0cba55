// A libcuda that does nothing and allocates nothing: what remains of a launch is the library's own.
// It shows one B200, whose context is always current.

#include <cstring>

#include "driver/driver_table.h"

// NOLINTBEGIN(misc-unused-parameters): the driver's signatures
#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace cubist::test {
namespace {

using namespace cubist::cuda;

namespace nothing {
#define CUBIST_DRIVER_SYMBOL(need, name, parameters) \
  CUresult name parameters { return CUDA_SUCCESS; }
#include "driver/symbols.def"
#undef CUBIST_DRIVER_SYMBOL
}  // namespace nothing

// Those that must write something.
CUresult device_count(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult device_name(char* name, int length, CUdevice device) {
  std::strncpy(name, "quiet", static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}
CUresult device_attribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
           : attribute == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT     ? 148
                                                                       : 232448;
  return CUDA_SUCCESS;
}
CUresult context_id(CUcontext context, unsigned long long* id) {
  *id = 1;
  return CUDA_SUCCESS;
}
CUresult capture_status(CUstream stream, CUstreamCaptureStatus* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult active_clusters(int* count, CUfunction function, const CUlaunchConfig* config) {
  *count = 1 << 20;
  return CUDA_SUCCESS;
}

void* find(const char* name) {
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("cuDeviceGetCount")) return reinterpret_cast<void*>(&device_count);
  if (is("cuDeviceGetName")) return reinterpret_cast<void*>(&device_name);
  if (is("cuDeviceGetAttribute")) return reinterpret_cast<void*>(&device_attribute);
  if (is("cuCtxGetId")) return reinterpret_cast<void*>(&context_id);
  if (is("cuStreamIsCapturing")) return reinterpret_cast<void*>(&capture_status);
  if (is("cuOccupancyMaxActiveClusters")) return reinterpret_cast<void*>(&active_clusters);
#define CUBIST_DRIVER_SYMBOL(need, symbol, parameters) \
  if (is(#symbol)) return reinterpret_cast<void*>(&nothing::symbol);
#include "driver/symbols.def"
#undef CUBIST_DRIVER_SYMBOL
  return nullptr;
}

}  // namespace
}  // namespace cubist::test

#define QUIET_EXPORT extern "C" __attribute__((visibility("default")))

QUIET_EXPORT cubist::cuda::CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return cubist::cuda::CUDA_SUCCESS;
}

QUIET_EXPORT cubist::cuda::CUresult cuGetProcAddress_v2(
    const char* symbol, void** function, int version, std::uint64_t flags,
    cubist::cuda::CUdriverProcAddressQueryResult* result) {
  *function = cubist::test::find(symbol);
  *result = *function == nullptr ? cubist::cuda::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                 : cubist::cuda::CU_GET_PROC_ADDRESS_SUCCESS;
  return *function == nullptr ? cubist::cuda::CUDA_ERROR_NOT_FOUND : cubist::cuda::CUDA_SUCCESS;
}
// NOLINTEND(misc-unused-parameters)
