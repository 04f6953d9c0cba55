#include "driver/driver_status.h"

namespace cubist::driver {
namespace {

StatusCode code_for(CUresult result, std::string_view call) {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_STUB_LIBRARY:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
      return StatusCode::kDriverUnavailable;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return StatusCode::kDeviceMismatch;
    // The driver is never uninitialised after cuInit, except in a child forked after somebody's
    // cuInit, where cuInit itself answers this.
    case CUDA_ERROR_NOT_INITIALIZED:
      return call == "cuInit" ? StatusCode::kForked : StatusCode::kDriverError;
    default:
      break;
  }
  const bool capture = result >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                       result <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  return capture ? StatusCode::kCapture : StatusCode::kDriverError;
}

std::string_view advice_for(CUresult result, std::string_view call) {
  switch (static_cast<int>(result)) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      return "; device memory is short: load kernels (prepare) before the large allocations";
    case CUDA_ERROR_NOT_INITIALIZED:
      return call == "cuInit" ? "; the driver was initialised before fork() by some library in the "
                                "parent: start workers with spawn or exec instead"
                              : "";
    case CUDA_ERROR_NO_DEVICE:
      return "; check nvidia-smi and CUDA_VISIBLE_DEVICES";
    case CUDA_ERROR_INVALID_CONTEXT:
      return "; make a CUDA context current on this thread first (cuCtxSetCurrent, or "
             "cudaSetDevice "
             "and any runtime call), one that the stream belongs to";
    case CUDA_ERROR_INVALID_HANDLE:
      return "; the stream may belong to another context than the one current on this thread";
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      return "; the cubin is for another architecture";
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
      return "; the driver is older than the cubin needs";
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      return "; the library and the kernel module have different versions: reboot or reinstall the "
             "driver";
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_LAUNCH_FAILED:
      return "; an earlier kernel failed and this CUDA context is lost: restart the process";
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return "; the current context was destroyed";
    default:
      return "";
  }
}

}  // namespace

Status check_driver(const DriverTable& table, CUresult result, std::string_view call) {
  if (result == CUDA_SUCCESS) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (table.cuGetErrorName(result, &name) != CUDA_SUCCESS || name == nullptr) {
    name = "an error without a name";
  }
  if (table.cuGetErrorString(result, &text) != CUDA_SUCCESS || text == nullptr) {
    text = "the driver has no description";
  }
  return fail(code_for(result, call), "{} failed: {} ({}): {}{}", call, name,
              static_cast<int>(result), text, advice_for(result, call));
}

}  // namespace cubist::driver
