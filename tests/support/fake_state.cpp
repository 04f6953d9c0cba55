#include "support/fake_state.h"

#include <cstdlib>
#include <sstream>

namespace cubist::test {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<FakeDevice> devices_from_environment() {
  const std::string text = environment("CUBIST_FAKE_CUDA_DEVICES");
  if (text.empty()) return {FakeDevice{}};
  std::vector<FakeDevice> devices;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const int sm = std::atoi(part.c_str());
    if (sm != 0) devices.push_back({"Fake sm_" + part, sm, 132, 232448});
  }
  return devices;
}

}  // namespace

FakeState& fake_state() {
  static FakeState* state = [] {
    auto* made = new FakeState;  // never destroyed: handles may be used while the process ends
    made->clear();
    return made;
  }();
  return *state;
}

std::vector<FakeContext*>& fake_context_stack() {
  thread_local std::vector<FakeContext*> stack;
  return stack;
}

FakeContext* fake_current_context() {
  const auto& stack = fake_context_stack();
  return stack.empty() ? nullptr : stack.back();
}

FakeContext* FakeState::make_context(int ordinal) {
  FakeContext* context = nullptr;
  for (const auto& candidate : contexts) {
    if (!candidate->alive) context = candidate.get();
  }
  if (context == nullptr) {
    contexts.push_back(std::make_unique<FakeContext>());
    context = contexts.back().get();
  }
  *context = {ordinal, next_context_id++, true};
  return context;
}

void FakeState::drop_modules_of(const FakeContext* context) {
  std::erase_if(modules, [&](const auto& entry) {
    return entry.second->context == context && entry.second->context_id == context->id;
  });
}

bool FakeState::any_capture() const {
  for (const auto& [key, stream] : streams) {
    if (stream->capture == cuda::CU_STREAM_CAPTURE_STATUS_ACTIVE) return true;
  }
  return false;
}

void FakeState::clear() {
  devices = devices_from_environment();
  initialised_pid = 0;
  for (const auto& context : contexts) context->alive = false;  // ids go on counting
  primary.clear();
  primary_retains.clear();
  modules.clear();
  functions.clear();
  streams.clear();
  for (const auto& [address, unused] : allocations) std::free(reinterpret_cast<void*>(address));
  allocations.clear();
  calls.clear();
  launches.clear();
  fail_countdown = 0;
  fail_always.clear();
  const std::string fail = environment("CUBIST_FAKE_CUDA_FAIL");
  if (const auto equals = fail.find('='); equals != std::string::npos) {
    fail_always[fail.substr(0, equals)] =
        static_cast<cuda::CUresult>(std::atoi(fail.c_str() + equals + 1));
  }
  max_active_clusters = 16;
  param_bytes = 512;
  load_delay_ms = 0;
}

cuda::CUresult fake_enter(const char* name) {
  FakeState& state = fake_state();
  cuda::CUresult result = cuda::CUDA_SUCCESS;
  if (state.fail_countdown > 0 && --state.fail_countdown == 0) result = state.fail_result;
  if (const auto found = state.fail_always.find(name); found != state.fail_always.end()) {
    result = found->second;
  }
  state.calls.push_back({name, result});
  return result;
}

}  // namespace cubist::test
