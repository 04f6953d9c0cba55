// The driver functions of symbols.def as the stand-in does them. Each takes the state's lock, notes
// the call, answers an injected error if there is one, then applies the driver's own rules.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "driver/driver_table.h"
#include "support/fake_aux.h"
#include "support/fake_decode.h"
#include "support/fake_elf.h"
#include "support/fake_state.h"
#include "support/fake_tensor_map.h"

namespace cubist::test {
namespace {

using namespace cubist::cuda;

/// Whether time is made up: launches do nothing, and each takes as long as its grid says.
bool has_clock() {
  static const bool kClock = std::getenv("CUBIST_FAKE_CUDA_CLOCK") != nullptr;
  return kClock;
}

thread_local int capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

template <class Handle, class Object>
Handle handle_of(Object* object) {
  return reinterpret_cast<Handle>(object);
}

/// Locks, notes the call, and lets only an initialised process through.
class Call {
 public:
  explicit Call(const char* name) : lock_(fake_state().mutex), result_(fake_enter(name)) {
    if (result_ == CUDA_SUCCESS && fake_state().initialised_pid != getpid()) {
      result_ = CUDA_ERROR_NOT_INITIALIZED;
    }
  }
  CUresult early() const { return result_; }
  void unlock() { lock_.unlock(); }
  void lock() { lock_.lock(); }

 private:
  std::unique_lock<std::mutex> lock_;
  CUresult result_;
};

#define FAKE_CALL(name)                             \
  [[maybe_unused]] FakeState& state = fake_state(); \
  Call call(#name);                                 \
  if (call.early() != CUDA_SUCCESS) return call.early()

#define FAKE_CALL_IN_CONTEXT(name)                           \
  FAKE_CALL(name);                                           \
  FakeContext* const current = fake_current_context();       \
  if (current == nullptr) return CUDA_ERROR_INVALID_CONTEXT; \
  if (!current->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED

CUresult cuInit(unsigned int flags) {
  FakeState& state = fake_state();
  const std::lock_guard lock(state.mutex);
  if (const CUresult early = fake_enter("cuInit"); early != CUDA_SUCCESS) return early;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (state.initialised_pid != 0 && state.initialised_pid != getpid()) {
    return CUDA_ERROR_NOT_INITIALIZED;  // what a driver answers in a forked child
  }
  if (state.devices.empty()) return CUDA_ERROR_NO_DEVICE;
  state.initialised_pid = getpid();
  return CUDA_SUCCESS;
}

// Not calls of their own in the record: they only put an error into words.
CUresult cuGetErrorName(CUresult error, const char** text) {
  switch (static_cast<int>(error)) {
    case CUDA_ERROR_OUT_OF_MEMORY:
      *text = "CUDA_ERROR_OUT_OF_MEMORY";
      break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
      *text = "CUDA_ERROR_NO_BINARY_FOR_GPU";
      break;
    case CUDA_ERROR_INVALID_CONTEXT:
      *text = "CUDA_ERROR_INVALID_CONTEXT";
      break;
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
      break;
    case CUDA_ERROR_NO_DEVICE:
      *text = "CUDA_ERROR_NO_DEVICE";
      break;
    case 12345:
      *text = nullptr;
      return CUDA_ERROR_INVALID_VALUE;
    default:
      *text = "CUDA_ERROR_SOMETHING";
      break;
  }
  return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  if (static_cast<int>(error) == 12345) {
    *text = nullptr;
    return CUDA_ERROR_INVALID_VALUE;
  }
  *text = "the stand-in's words for it";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  FAKE_CALL(cuDeviceGetCount);
  *count = static_cast<int>(state.devices.size());
  return CUDA_SUCCESS;
}

bool known(const FakeState& state, CUdevice device) {
  return device >= 0 && static_cast<std::size_t>(device) < state.devices.size();
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  FAKE_CALL(cuDeviceGet);
  if (!known(state, ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  FAKE_CALL(cuDeviceGetName);
  if (!known(state, device)) return CUDA_ERROR_INVALID_DEVICE;
  std::strncpy(name, state.devices[static_cast<std::size_t>(device)].name.c_str(),
               static_cast<std::size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  FAKE_CALL(cuDeviceGetAttribute);
  if (!known(state, device)) return CUDA_ERROR_INVALID_DEVICE;
  const FakeDevice& found = state.devices[static_cast<std::size_t>(device)];
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = found.num_sms;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = found.sm / 10;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = found.sm % 10;
      break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = found.max_smem_optin;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxRetain);
  if (!known(state, device)) return CUDA_ERROR_INVALID_DEVICE;
  if (state.primary_retains[device]++ == 0) state.primary[device] = state.make_context(device);
  *context = handle_of<CUcontext>(state.primary[device]);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  FAKE_CALL(cuDevicePrimaryCtxRelease);
  if (state.primary_retains[device] == 0) return CUDA_ERROR_INVALID_CONTEXT;
  if (--state.primary_retains[device] == 0) {
    state.drop_modules_of(state.primary[device]);
    state.primary[device]->alive = false;
  }
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  FAKE_CALL(cuCtxGetCurrent);
  *context = handle_of<CUcontext>(fake_current_context());
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  FAKE_CALL(cuCtxGetId);
  auto* const found =
      context == nullptr ? fake_current_context() : reinterpret_cast<FakeContext*>(context);
  if (found == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (!found->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = found->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  FAKE_CALL_IN_CONTEXT(cuCtxGetDevice);
  *device = current->ordinal;
  return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) {
  FAKE_CALL(cuCtxPushCurrent);
  auto* const found = reinterpret_cast<FakeContext*>(context);
  if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!found->alive) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  fake_context_stack().push_back(found);
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context) {
  FAKE_CALL(cuCtxPopCurrent);
  auto& stack = fake_context_stack();
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = handle_of<CUcontext>(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

/// A call that is not allowed while somebody captures, unless this thread said it knows (RELAXED):
/// spoils every capture that goes on.
CUresult unsafe_while_capturing(FakeState& state) {
  if (capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED || !state.any_capture()) return CUDA_SUCCESS;
  for (auto& [key, stream] : state.streams) {
    if (stream->capture != 0) stream->capture = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
  }
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_CALL_IN_CONTEXT(cuModuleLoadData);
  if (const CUresult unsafe = unsafe_while_capturing(state); unsafe != CUDA_SUCCESS) return unsafe;
  if (state.load_delay_ms > 0) {
    call.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(state.load_delay_ms));
    call.lock();
  }
  const auto sm = fake_elf_sm(image);
  if (!sm) return CUDA_ERROR_INVALID_IMAGE;
  const FakeDevice& device = state.devices[static_cast<std::size_t>(current->ordinal)];
  if (*sm / 10 != device.sm / 10 || *sm > device.sm) return CUDA_ERROR_NO_BINARY_FOR_GPU;
  auto made = std::make_unique<FakeModule>(FakeModule{current, current->id, image});
  *module = handle_of<CUmodule>(made.get());
  state.modules.emplace(made.get(), std::move(made));
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  FAKE_CALL_IN_CONTEXT(cuModuleUnload);
  const auto found = state.modules.find(reinterpret_cast<FakeModule*>(module));
  if (found == state.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (found->second->context != current) return CUDA_ERROR_INVALID_CONTEXT;
  state.modules.erase(found);
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_CALL_IN_CONTEXT(cuModuleGetFunction);
  const auto found = state.modules.find(reinterpret_cast<FakeModule*>(module));
  if (found == state.modules.end()) return CUDA_ERROR_INVALID_HANDLE;
  if (!fake_elf_has_function(found->second->image, name)) return CUDA_ERROR_NOT_FOUND;
  state.functions.push_back(std::make_unique<FakeFunction>());
  state.functions.back()->module = found->first;
  state.functions.back()->name = name;
  state.functions.back()->param_bytes = fake_elf_param_bytes(found->second->image, name);
  *function = handle_of<CUfunction>(state.functions.back().get());
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  FAKE_CALL_IN_CONTEXT(cuFuncSetAttribute);
  auto* const found = reinterpret_cast<FakeFunction*>(function);
  const FakeDevice& device = state.devices[static_cast<std::size_t>(current->ordinal)];
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      if (value < 0 || value > device.max_smem_optin) return CUDA_ERROR_INVALID_VALUE;
      found->max_dynamic_smem = static_cast<unsigned>(value);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
      found->non_portable_cluster = value != 0;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

/// Reads a configuration as the driver does; the answer is its verdict on the limits.
CUresult read_config(const CUlaunchConfig& config, const FakeFunction& function,
                     FakeLaunch& launch) {
  launch.function = function.name;
  launch.grid = {config.gridDimX, config.gridDimY, config.gridDimZ};
  launch.block = {config.blockDimX, config.blockDimY, config.blockDimZ};
  launch.smem = config.sharedMemBytes;
  launch.stream = config.hStream;
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& attribute = config.attrs[i];
    switch (attribute.id) {
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        launch.has_cluster = true;
        launch.cluster = {attribute.value.clusterDim.x, attribute.value.clusterDim.y,
                          attribute.value.clusterDim.z};
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        launch.cluster_sched_policy = attribute.value.clusterSchedulingPolicyPreference;
        break;
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        launch.pdl = attribute.value.programmaticStreamSerializationAllowed != 0;
        break;
      default:
        return CUDA_ERROR_INVALID_VALUE;
    }
  }
  const auto product = [](const std::array<unsigned, 3>& v) {
    return static_cast<std::uint64_t>(v[0]) * v[1] * v[2];
  };
  if (product(launch.grid) == 0 || launch.grid[0] > 0x7fffffffU || launch.grid[1] > 65535 ||
      launch.grid[2] > 65535) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (product(launch.block) == 0 || product(launch.block) > 1024) return CUDA_ERROR_INVALID_VALUE;
  if (launch.smem > function.max_dynamic_smem) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t cluster = product(launch.cluster);
  if (cluster == 0 || cluster > 16 || (cluster > 8 && !function.non_portable_cluster)) {
    return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  for (std::size_t i = 0; i < 3; ++i) {
    if (launch.grid[i] % launch.cluster[i] != 0) return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction function,
                                      const CUlaunchConfig* config) {
  FAKE_CALL_IN_CONTEXT(cuOccupancyMaxActiveClusters);
  FakeLaunch launch;
  const CUresult verdict = read_config(*config, *reinterpret_cast<FakeFunction*>(function), launch);
  if (verdict != CUDA_SUCCESS) return verdict;
  *count = state.max_active_clusters;
  return CUDA_SUCCESS;
}

/// The driver's rules for tiled descriptors without interleave (CUDA driver API reference).
bool takes_tensor_map(const FakeTensorMap& map) {
  constexpr std::uint32_t kPackedFp4 = 14;
  constexpr std::array<std::uint32_t, 13> kBytes = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
  constexpr std::array<std::uint32_t, 4> kSpans = {1U << 30, 32, 64, 128};
  const bool packed = map.type == kPackedFp4;
  if (!packed && map.type >= kBytes.size()) return false;
  if (map.rank < 1 || map.rank > 5 || map.swizzle >= kSpans.size()) return false;
  const std::uint64_t alignment = packed ? 32 : 16;
  if (map.address == 0 || map.address % alignment != 0) return false;
  for (std::uint32_t i = 0; i < map.rank; ++i) {
    if (map.dims[i] < 1 || map.dims[i] > std::uint64_t{1} << 32) return false;
    if (map.box[i] < 1 || map.box[i] > 256) return false;
    if (map.element_strides[i] < 1 || map.element_strides[i] > 8) return false;
    if (i == 0) continue;
    const std::uint64_t stride = map.strides[i - 1];
    if (stride % alignment != 0 || stride >= std::uint64_t{1} << 40) return false;
  }
  if (packed) return map.dims[0] % 128 == 0 && map.box[0] == 128 && map.swizzle % 3 == 0;
  const std::uint32_t row = map.box[0] * kBytes[map.type];
  return row % 16 == 0 && row <= kSpans[map.swizzle];
}

/// Takes what the driver would, and lays it down so that a test can read it again.
CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, unsigned int rank,
                                void* address, const std::uint64_t* dims,
                                const std::uint64_t* strides, const std::uint32_t* box,
                                const std::uint32_t* element_strides,
                                CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  FAKE_CALL(cuTensorMapEncodeTiled);
  if (map == nullptr || reinterpret_cast<std::uintptr_t>(map) % 64 != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (rank < 1 || rank > 5) return CUDA_ERROR_INVALID_VALUE;
  FakeTensorMap made;
  made.address = reinterpret_cast<std::uint64_t>(address);
  made.type = type;
  made.rank = rank;
  made.swizzle = swizzle;
  made.interleave = interleave;
  made.l2_promotion = promotion;
  made.oob_fill = fill;
  for (unsigned int i = 0; i < rank; ++i) {
    if (box[i] > 256) return CUDA_ERROR_INVALID_VALUE;
    made.dims[i] = dims[i];
    made.box[i] = static_cast<std::uint16_t>(box[i]);
    made.element_strides[i] = static_cast<std::uint8_t>(element_strides[i]);
    if (i > 0) made.strides[i - 1] = strides[i - 1];
  }
  if (!takes_tensor_map(made)) return CUDA_ERROR_INVALID_VALUE;
  *map = {};
  std::memcpy(static_cast<void*>(map), &made, sizeof(made));
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  FAKE_CALL_IN_CONTEXT(cuLaunchKernelEx);
  auto* const found = reinterpret_cast<FakeFunction*>(function);
  if (!state.modules.contains(found->module)) return CUDA_ERROR_INVALID_HANDLE;
  if (found->module->context != current) return CUDA_ERROR_INVALID_HANDLE;
  FakeLaunch launch;
  if (const CUresult verdict = read_config(*config, *found, launch); verdict != CUDA_SUCCESS) {
    return verdict;
  }
  if ((parameters == nullptr) == (extra == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  launch.context = handle_of<CUcontext>(current);
  if (config->hStream != nullptr) {
    auto* const stream = reinterpret_cast<FakeStream*>(config->hStream);
    if (!state.streams.contains(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->context != current) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture == CU_STREAM_CAPTURE_STATUS_INVALIDATED) {
      return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    launch.captured = stream->capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  const auto* bytes = static_cast<const std::uint8_t*>(parameters[0]);
  launch.params.assign(bytes, bytes + found->param_bytes.value_or(state.param_bytes));
  if (has_clock()) {
    const double ctas = 1.0 * launch.grid[0] * launch.grid[1] * launch.grid[2];
    state.clock_us += 5.0 + 2.0 * std::ceil(ctas / 132.0);
  } else {
    if (!launch.captured) run_fake_aux_kernel(launch);
    if (!launch.captured && !run_fake_kernel(launch)) return CUDA_ERROR_ILLEGAL_ADDRESS;
  }
  state.launches.push_back(std::move(launch));
  return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_CALL_IN_CONTEXT(cuStreamIsCapturing);
  if (stream == nullptr) {
    if (state.any_capture()) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  }
  const auto found = state.streams.find(reinterpret_cast<FakeStream*>(stream));
  if (found == state.streams.end()) return CUDA_ERROR_INVALID_HANDLE;
  *status = static_cast<CUstreamCaptureStatus>(found->second->capture);
  return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  FAKE_CALL(cuThreadExchangeStreamCaptureMode);
  const int before = capture_mode;
  capture_mode = *mode;
  *mode = static_cast<CUstreamCaptureMode>(before);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream /*stream*/) {
  FAKE_CALL_IN_CONTEXT(cuStreamSynchronize);
  return unsafe_while_capturing(state);
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  FAKE_CALL_IN_CONTEXT(cuMemAlloc);
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  std::memset(memory, 0xa5, bytes);  // never accidentally zero
  state.allocations[reinterpret_cast<std::uintptr_t>(memory)] = {bytes, current->ordinal};
  *address = reinterpret_cast<CUdeviceptr>(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
  FAKE_CALL_IN_CONTEXT(cuMemFree);
  void* const memory = reinterpret_cast<void*>(address);
  if (state.allocations.erase(address) == 0) return CUDA_ERROR_INVALID_VALUE;
  std::free(memory);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  FAKE_CALL_IN_CONTEXT(cuMemcpyHtoD);
  std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  FAKE_CALL_IN_CONTEXT(cuMemcpyDtoH);
  std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  FAKE_CALL(cuPointerGetAttribute);
  auto found = state.allocations.upper_bound(address);
  if (found == state.allocations.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [start, allocation] = *--found;
  if (address >= start + allocation.bytes) return CUDA_ERROR_INVALID_VALUE;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(value) = allocation.ordinal;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<CUdeviceptr*>(value) = start;
      return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(value) = allocation.bytes;
      return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, std::size_t bytes,
                         CUstream /*stream*/) {
  FAKE_CALL_IN_CONTEXT(cuMemsetD8Async);
  std::memset(reinterpret_cast<void*>(address), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent* event, unsigned int /*flags*/) {
  FAKE_CALL_IN_CONTEXT(cuEventCreate);
  *event = handle_of<CUevent>(new double(0));
  return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream /*stream*/) {
  FAKE_CALL_IN_CONTEXT(cuEventRecord);
  *reinterpret_cast<double*>(event) = state.clock_us;
  return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent /*event*/) {
  FAKE_CALL_IN_CONTEXT(cuEventSynchronize);
  return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent stop) {
  FAKE_CALL_IN_CONTEXT(cuEventElapsedTime);
  const double us = *reinterpret_cast<double*>(stop) - *reinterpret_cast<double*>(start);
  *milliseconds = has_clock() ? static_cast<float>(us / 1000) : 0.5F;
  return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent event) {
  FAKE_CALL_IN_CONTEXT(cuEventDestroy);
  delete reinterpret_cast<double*>(event);
  return CUDA_SUCCESS;
}

bool hidden(std::string_view name) {
  const char* list = std::getenv("CUBIST_FAKE_CUDA_HIDE");
  if (list == nullptr) return false;
  const std::string padded = "," + std::string(list) + ",";
  return padded.find("," + std::string(name) + ",") != std::string::npos;
}

}  // namespace

void* fake_function(const std::string& name) {
  if (hidden(name)) return nullptr;
#define CUBIST_DRIVER_SYMBOL(need, function, parameters)                          \
  if (name == #function) {                                                        \
    CUresult(*const typed) parameters = &function; /* the signature must match */ \
    return reinterpret_cast<void*>(typed);                                        \
  }
#include "driver/symbols.def"
#undef CUBIST_DRIVER_SYMBOL
  return nullptr;
}

}  // namespace cubist::test
