#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "support/fake_libcuda.h"

namespace cubist::test {

// The stand-in's driver objects. A CUcontext, CUmodule, ... handed out is the address of one of
// these.

struct FakeContext {
  int ordinal = 0;
  std::uint64_t id = 0;
  bool alive = false;
};

struct FakeModule {
  FakeContext* context = nullptr;
  std::uint64_t context_id = 0;
  const void* image = nullptr;
};

struct FakeFunction {
  FakeModule* module = nullptr;
  std::string name;
  unsigned max_dynamic_smem = 48 * 1024;
  bool non_portable_cluster = false;
  /// Of its parameter block, where the cubin says; read at load, as the image need not stay.
  std::optional<std::size_t> param_bytes;
};

struct FakeAllocation {
  std::size_t bytes = 0;
  int ordinal = 0;
};

struct FakeStream {
  FakeContext* context = nullptr;
  int capture = 0;  ///< a CUstreamCaptureStatus
};

/// One process worth of driver. Everything is guarded by `mutex`.
struct FakeState {
  mutable std::mutex mutex;
  std::vector<FakeDevice> devices;
  int initialised_pid = 0;
  std::uint64_t next_context_id = 1;
  std::vector<std::unique_ptr<FakeContext>> contexts;
  std::map<int, FakeContext*> primary;
  std::map<int, int> primary_retains;
  std::map<FakeModule*, std::unique_ptr<FakeModule>> modules;
  std::vector<std::unique_ptr<FakeFunction>> functions;
  std::map<FakeStream*, std::unique_ptr<FakeStream>> streams;
  std::map<std::uintptr_t, FakeAllocation> allocations;  ///< by address

  std::vector<FakeCall> calls;
  std::vector<FakeLaunch> launches;
  int fail_countdown = 0;  ///< 0 = nothing to fail
  cuda::CUresult fail_result = cuda::CUDA_SUCCESS;
  std::map<std::string, cuda::CUresult> fail_always;
  int max_active_clusters = 16;
  std::size_t param_bytes = 512;
  int load_delay_ms = 0;
  double clock_us = 0;  ///< of CUBIST_FAKE_CUDA_CLOCK

  FakeContext* make_context(int ordinal);
  void drop_modules_of(const FakeContext* context);
  bool any_capture() const;
  void clear();
};

FakeState& fake_state();

/// Contexts pushed by the calling thread; the last is current.
std::vector<FakeContext*>& fake_context_stack();
FakeContext* fake_current_context();

/// Notes the call, and says what it must answer at once: an injected error, or success to go on.
cuda::CUresult fake_enter(const char* name);

/// The driver's functions of symbols.def by name; null for an unknown or hidden one.
void* fake_function(const std::string& name);

}  // namespace cubist::test
