// What the stand-in exports: the two symbols that dlsym is asked for in a real libcuda, and the
// control for the tests.

#include "support/fake_libcuda.h"

#include <cstdlib>
#include <cstring>

#include "support/fake_state.h"

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace cubist::test {
namespace {

class Control final : public FakeCuda {
 public:
  void reset() override {
    const std::lock_guard lock(state_.mutex);
    state_.clear();
    fake_context_stack().clear();
  }
  void set_devices(std::vector<FakeDevice> devices) override {
    const std::lock_guard lock(state_.mutex);
    state_.devices = std::move(devices);
  }
  std::vector<FakeCall> calls() const override {
    const std::lock_guard lock(state_.mutex);
    return state_.calls;
  }
  std::vector<FakeLaunch> launches() const override {
    const std::lock_guard lock(state_.mutex);
    return state_.launches;
  }
  int count(const std::string& name) const override {
    int found = 0;
    for (const FakeCall& call : calls()) found += call.name == name ? 1 : 0;
    return found;
  }
  void forget_calls() override {
    const std::lock_guard lock(state_.mutex);
    state_.calls.clear();
    state_.launches.clear();
  }
  FakeLeaks leaks() const override {
    const std::lock_guard lock(state_.mutex);
    int retains = 0;
    for (const auto& [ordinal, count] : state_.primary_retains) retains += count;
    return {static_cast<int>(state_.modules.size()), static_cast<int>(state_.allocations.size()),
            retains, static_cast<int>(fake_context_stack().size())};
  }
  void fail_nth(int nth, cuda::CUresult result) override {
    const std::lock_guard lock(state_.mutex);
    state_.fail_countdown = nth;
    state_.fail_result = result;
  }
  void fail_function(const std::string& name, cuda::CUresult result) override {
    const std::lock_guard lock(state_.mutex);
    state_.fail_always[name] = result;
    if (result == cuda::CUDA_SUCCESS) state_.fail_always.erase(name);
  }
  cuda::CUcontext create_context(int ordinal) override {
    const std::lock_guard lock(state_.mutex);
    return reinterpret_cast<cuda::CUcontext>(state_.make_context(ordinal));
  }
  void destroy_context(cuda::CUcontext context) override {
    const std::lock_guard lock(state_.mutex);
    auto* const found = reinterpret_cast<FakeContext*>(context);
    state_.drop_modules_of(found);
    found->alive = false;
  }
  void set_current(cuda::CUcontext context) override {
    fake_context_stack().clear();
    if (context != nullptr) fake_context_stack().push_back(reinterpret_cast<FakeContext*>(context));
  }
  void* allocate(const void* from, std::size_t bytes) override {
    const std::lock_guard lock(state_.mutex);
    void* const memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
    std::memcpy(memory, from, bytes);
    state_.allocations[reinterpret_cast<std::uintptr_t>(memory)] = {
        bytes, fake_current_context()->ordinal};
    return memory;
  }
  cuda::CUstream create_stream() override {
    const std::lock_guard lock(state_.mutex);
    auto made = std::make_unique<FakeStream>(FakeStream{fake_current_context(), 0});
    FakeStream* const key = made.get();
    state_.streams.emplace(key, std::move(made));
    return reinterpret_cast<cuda::CUstream>(key);
  }
  void destroy_stream(cuda::CUstream stream) override {
    const std::lock_guard lock(state_.mutex);
    state_.streams.erase(reinterpret_cast<FakeStream*>(stream));
  }
  void begin_capture(cuda::CUstream stream) override {
    const std::lock_guard lock(state_.mutex);
    reinterpret_cast<FakeStream*>(stream)->capture = cuda::CU_STREAM_CAPTURE_STATUS_ACTIVE;
  }
  bool end_capture(cuda::CUstream stream) override {
    const std::lock_guard lock(state_.mutex);
    auto* const found = reinterpret_cast<FakeStream*>(stream);
    const bool valid = found->capture == cuda::CU_STREAM_CAPTURE_STATUS_ACTIVE;
    found->capture = cuda::CU_STREAM_CAPTURE_STATUS_NONE;
    return valid;
  }
  void set_max_active_clusters(int count) override {
    const std::lock_guard lock(state_.mutex);
    state_.max_active_clusters = count;
  }
  void set_param_bytes(std::size_t bytes) override {
    const std::lock_guard lock(state_.mutex);
    state_.param_bytes = bytes;
  }
  void set_load_delay_ms(int milliseconds) override {
    const std::lock_guard lock(state_.mutex);
    state_.load_delay_ms = milliseconds;
  }

 private:
  FakeState& state_ = fake_state();
};

}  // namespace
}  // namespace cubist::test

FAKE_EXPORT cubist::cuda::CUresult cuDriverGetVersion(int* version) {
  const char* text = std::getenv("CUBIST_FAKE_CUDA_VERSION");
  *version = text == nullptr ? 13000 : std::atoi(text);
  return cubist::cuda::CUDA_SUCCESS;
}

FAKE_EXPORT cubist::cuda::CUresult cuGetProcAddress_v2(
    const char* symbol, void** function, int /*version*/, std::uint64_t /*flags*/,
    cubist::cuda::CUdriverProcAddressQueryResult* result) {
  *function = cubist::test::fake_function(symbol);
  *result = *function == nullptr ? cubist::cuda::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND
                                 : cubist::cuda::CU_GET_PROC_ADDRESS_SUCCESS;
  return *function == nullptr ? cubist::cuda::CUDA_ERROR_NOT_FOUND : cubist::cuda::CUDA_SUCCESS;
}

FAKE_EXPORT cubist::test::FakeCuda* cubist_fake_cuda_control() {
  static cubist::test::Control control;
  return &control;
}
