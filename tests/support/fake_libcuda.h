#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "driver/cuda_abi.h"

namespace cubist::test {

/// One call the stand-in received, with what it answered.
struct FakeCall {
  std::string name;
  cuda::CUresult result = cuda::CUDA_SUCCESS;
};

/// One accepted cuLaunchKernelEx.
struct FakeLaunch {
  std::string function;
  std::array<unsigned, 3> grid{};
  std::array<unsigned, 3> block{};
  std::array<unsigned, 3> cluster{1, 1, 1};
  bool has_cluster = false;  ///< the cluster attribute was given
  int cluster_sched_policy = 0;
  bool pdl = false;
  unsigned smem = 0;
  cuda::CUcontext context = nullptr;
  cuda::CUstream stream = nullptr;
  bool captured = false;  ///< went into a capture instead of running
  std::vector<std::uint8_t> params;
};

/// What is still held; all zero after a clean run.
struct FakeLeaks {
  int modules = 0;
  int allocations = 0;
  int primary_retains = 0;
  int context_depth = 0;  ///< contexts pushed and not popped on the asking thread
  bool operator==(const FakeLeaks&) const = default;
};

struct FakeDevice {
  std::string name = "Fake H200";
  int sm = 90;
  int num_sms = 132;
  int max_smem_optin = 232448;
};

/// Steers and questions tests/support/fake_libcuda.cpp, a libcuda that runs on no GPU: it keeps
/// contexts, modules, streams and memory (in host memory), applies the driver's rules to each call,
/// and "runs" the cubist_decode kernels on the CPU. Safe from any thread.
///
/// A CLI test steers it by environment instead: CUBIST_FAKE_CUDA_DEVICES ("0" = none, or "sm,sm"),
/// CUBIST_FAKE_CUDA_VERSION (driver version), CUBIST_FAKE_CUDA_HIDE (symbols cuGetProcAddress does
/// not know, comma-separated), CUBIST_FAKE_CUDA_FAIL ("cuModuleLoadData=2": always fails so),
/// CUBIST_FAKE_CUDA_CLOCK (launches do nothing but take time, which events show: 5 us and 2 us for
/// every 132 CTAs begun).
class FakeCuda {
 public:
  /// Back to a process in which nobody called cuInit: one H200, nothing recorded, nothing to fail.
  virtual void reset() = 0;
  virtual void set_devices(std::vector<FakeDevice> devices) = 0;

  virtual std::vector<FakeCall> calls() const = 0;
  virtual std::vector<FakeLaunch> launches() const = 0;
  virtual int count(const std::string& name) const = 0;
  virtual void forget_calls() = 0;  ///< calls and launches; state stays
  virtual FakeLeaks leaks() const = 0;

  /// The nth call from now on (1 = the next) answers `result` and does nothing.
  virtual void fail_nth(int nth, cuda::CUresult result) = 0;
  /// Every call of this name does, until reset or result 0.
  virtual void fail_function(const std::string& name, cuda::CUresult result) = 0;

  virtual cuda::CUcontext create_context(int ordinal) = 0;
  /// Its modules go with it. A later create_context reuses the address.
  virtual void destroy_context(cuda::CUcontext context) = 0;
  virtual void set_current(cuda::CUcontext context) = 0;  ///< of the calling thread; null = none

  /// Memory of the current context's device that holds a copy of `from`; goes with reset().
  virtual void* allocate(const void* from, std::size_t bytes) = 0;

  virtual cuda::CUstream create_stream() = 0;  ///< in the current context
  virtual void destroy_stream(cuda::CUstream stream) = 0;
  virtual void begin_capture(cuda::CUstream stream) = 0;
  /// Whether the capture is still valid; ends it.
  virtual bool end_capture(cuda::CUstream stream) = 0;

  /// What cuOccupancyMaxActiveClusters answers.
  virtual void set_max_active_clusters(int count) = 0;
  /// Bytes of the parameter block that a launch copies, where the cubin does not say.
  virtual void set_param_bytes(std::size_t bytes) = 0;
  /// Makes cuModuleLoadData take this long, so that threads meet there.
  virtual void set_load_delay_ms(int milliseconds) = 0;

 protected:
  ~FakeCuda() = default;
};

/// The stand-in of this process: opens CUBIST_FAKE_LIBCUDA (a path given by CMake) and finds its
/// control. The tests name the same path to the driver room.
FakeCuda& fake_cuda();
const char* fake_libcuda_path();

/// CUDA error codes the driver is known to answer, for tests that inject each.
const std::vector<int>& all_cuda_errors();

}  // namespace cubist::test
