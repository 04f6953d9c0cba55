#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cubist/cubist.h"

namespace cubist::test {

/// Calls of the trtllm-gen family, each of another kind, ready to be launched through the C API
/// over quiet_libcuda.cpp; their cubins are made for it. Not for several threads: sets the
/// process's environment.
class WarmCalls {
 public:
  /// Throws std::runtime_error where anything fails.
  WarmCalls();
  ~WarmCalls();
  WarmCalls(const WarmCalls&) = delete;
  WarmCalls& operator=(const WarmCalls&) = delete;

  struct Call {
    std::string name;
    cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
    cubist_attention_args args = CUBIST_ATTENTION_ARGS_INIT;
    cubist_selection* selection = nullptr;
    std::string kernel;    ///< of the plan that is launched
    int num_launches = 1;  ///< with the reduction and the LSE kernel
  };
  const std::vector<Call>& calls() const { return calls_; }

  cubist_status launch_selection(const Call& call) const {
    return cubist_selection_launch(call.selection, &call.args, nullptr);
  }
  cubist_status launch_runtime(const Call& call) const {
    return cubist_runtime_launch(runtime_, &call.problem, &device_, &call.args, nullptr);
  }

 private:
  void open(const std::string& manifest);
  void close();
  void select(Call& call);

  std::string folder_;
  cubist_runtime* runtime_ = nullptr;
  cubist_device device_ = CUBIST_DEVICE_INIT;
  std::vector<Call> calls_;
};

/// The stand-in that does nothing, for bare calls.
const char* quiet_libcuda_path();

}  // namespace cubist::test
