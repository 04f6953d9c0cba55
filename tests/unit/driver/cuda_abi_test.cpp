#include "driver/cuda_abi.h"

#include "support/catch.h"

// Compile-time comparison with the toolkit's header; a machine without it has nothing to compare.
#if __has_include(<cuda.h>)
#include <cuda.h>
#define CUBIST_HAS_CUDA_H 1

namespace ours = cubist::cuda;

#define CUBIST_SAME_VALUE(name) \
  static_assert(static_cast<int>(ours::name) == static_cast<int>(::name), #name)
#define CUBIST_SAME_OFFSET(type, member)                                    \
  static_assert(offsetof(ours::type, member) == offsetof(::type, member) && \
                    sizeof(ours::type::member) == sizeof(::type::member),   \
                #type "::" #member)

static_assert(sizeof(ours::CUresult) == sizeof(::CUresult));
static_assert(sizeof(ours::CUdevice) == sizeof(::CUdevice));
static_assert(sizeof(ours::CUdeviceptr) == sizeof(::CUdeviceptr));
static_assert(sizeof(ours::CUstream) == sizeof(::CUstream));
static_assert(sizeof(ours::CUdevice_attribute) == sizeof(::CUdevice_attribute));
static_assert(sizeof(ours::CUfunction_attribute) == sizeof(::CUfunction_attribute));
static_assert(sizeof(ours::CUstreamCaptureStatus) == sizeof(::CUstreamCaptureStatus));
static_assert(sizeof(ours::CUstreamCaptureMode) == sizeof(::CUstreamCaptureMode));
static_assert(sizeof(ours::CUdriverProcAddressQueryResult) ==
              sizeof(::CUdriverProcAddressQueryResult));

static_assert(sizeof(ours::CUlaunchAttributeValue) == sizeof(::CUlaunchAttributeValue));
static_assert(alignof(ours::CUlaunchAttributeValue) <= alignof(::CUlaunchAttributeValue));
static_assert(sizeof(ours::CUlaunchAttribute) == sizeof(::CUlaunchAttribute));
CUBIST_SAME_OFFSET(CUlaunchAttribute, id);
CUBIST_SAME_OFFSET(CUlaunchAttribute, value);
CUBIST_SAME_OFFSET(CUlaunchAttributeValue, clusterDim);
CUBIST_SAME_OFFSET(CUlaunchAttributeValue, clusterSchedulingPolicyPreference);
CUBIST_SAME_OFFSET(CUlaunchAttributeValue, programmaticStreamSerializationAllowed);

static_assert(sizeof(ours::CUlaunchConfig) == sizeof(::CUlaunchConfig));
CUBIST_SAME_OFFSET(CUlaunchConfig, gridDimX);
CUBIST_SAME_OFFSET(CUlaunchConfig, gridDimY);
CUBIST_SAME_OFFSET(CUlaunchConfig, gridDimZ);
CUBIST_SAME_OFFSET(CUlaunchConfig, blockDimX);
CUBIST_SAME_OFFSET(CUlaunchConfig, blockDimY);
CUBIST_SAME_OFFSET(CUlaunchConfig, blockDimZ);
CUBIST_SAME_OFFSET(CUlaunchConfig, sharedMemBytes);
CUBIST_SAME_OFFSET(CUlaunchConfig, hStream);
CUBIST_SAME_OFFSET(CUlaunchConfig, attrs);
CUBIST_SAME_OFFSET(CUlaunchConfig, numAttrs);

CUBIST_SAME_VALUE(CUDA_SUCCESS);
CUBIST_SAME_VALUE(CUDA_ERROR_INVALID_VALUE);
CUBIST_SAME_VALUE(CUDA_ERROR_OUT_OF_MEMORY);
CUBIST_SAME_VALUE(CUDA_ERROR_NOT_INITIALIZED);
CUBIST_SAME_VALUE(CUDA_ERROR_DEINITIALIZED);
CUBIST_SAME_VALUE(CUDA_ERROR_STUB_LIBRARY);
CUBIST_SAME_VALUE(CUDA_ERROR_DEVICE_UNAVAILABLE);
CUBIST_SAME_VALUE(CUDA_ERROR_NO_DEVICE);
CUBIST_SAME_VALUE(CUDA_ERROR_INVALID_DEVICE);
CUBIST_SAME_VALUE(CUDA_ERROR_INVALID_IMAGE);
CUBIST_SAME_VALUE(CUDA_ERROR_INVALID_CONTEXT);
CUBIST_SAME_VALUE(CUDA_ERROR_NO_BINARY_FOR_GPU);
CUBIST_SAME_VALUE(CUDA_ERROR_ECC_UNCORRECTABLE);
CUBIST_SAME_VALUE(CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
CUBIST_SAME_VALUE(CUDA_ERROR_INVALID_HANDLE);
CUBIST_SAME_VALUE(CUDA_ERROR_NOT_FOUND);
CUBIST_SAME_VALUE(CUDA_ERROR_ILLEGAL_ADDRESS);
CUBIST_SAME_VALUE(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
CUBIST_SAME_VALUE(CUDA_ERROR_LAUNCH_TIMEOUT);
CUBIST_SAME_VALUE(CUDA_ERROR_CONTEXT_IS_DESTROYED);
CUBIST_SAME_VALUE(CUDA_ERROR_ASSERT);
CUBIST_SAME_VALUE(CUDA_ERROR_HARDWARE_STACK_ERROR);
CUBIST_SAME_VALUE(CUDA_ERROR_LAUNCH_FAILED);
CUBIST_SAME_VALUE(CUDA_ERROR_SYSTEM_NOT_READY);
CUBIST_SAME_VALUE(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH);
CUBIST_SAME_VALUE(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
CUBIST_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
CUBIST_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
CUBIST_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
CUBIST_SAME_VALUE(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
CUBIST_SAME_VALUE(CUDA_ERROR_INVALID_CLUSTER_SIZE);
CUBIST_SAME_VALUE(CUDA_ERROR_UNKNOWN);
CUBIST_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
CUBIST_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
CUBIST_SAME_VALUE(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
CUBIST_SAME_VALUE(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
CUBIST_SAME_VALUE(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
CUBIST_SAME_VALUE(CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
CUBIST_SAME_VALUE(CU_STREAM_CAPTURE_STATUS_NONE);
CUBIST_SAME_VALUE(CU_STREAM_CAPTURE_STATUS_ACTIVE);
CUBIST_SAME_VALUE(CU_STREAM_CAPTURE_STATUS_INVALIDATED);
CUBIST_SAME_VALUE(CU_STREAM_CAPTURE_MODE_GLOBAL);
CUBIST_SAME_VALUE(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
CUBIST_SAME_VALUE(CU_STREAM_CAPTURE_MODE_RELAXED);
CUBIST_SAME_VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
CUBIST_SAME_VALUE(CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE);
CUBIST_SAME_VALUE(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
CUBIST_SAME_VALUE(CU_CLUSTER_SCHEDULING_POLICY_DEFAULT);
CUBIST_SAME_VALUE(CU_CLUSTER_SCHEDULING_POLICY_SPREAD);
CUBIST_SAME_VALUE(CU_GET_PROC_ADDRESS_SUCCESS);
CUBIST_SAME_VALUE(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
CUBIST_SAME_VALUE(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
#else
#define CUBIST_HAS_CUDA_H 0
#endif

TEST_CASE("the declared driver ABI has the sizes of 64-bit Linux") {
  INFO((CUBIST_HAS_CUDA_H ? "compared with <cuda.h> at compile time"
                          : "no <cuda.h>: only the known sizes are checked"));
  CHECK(sizeof(cubist::cuda::CUlaunchConfig) == 56);
  CHECK(sizeof(cubist::cuda::CUlaunchAttribute) == 72);
  CHECK(sizeof(cubist::cuda::CUlaunchAttributeValue) == 64);
}
