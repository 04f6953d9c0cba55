#pragma once

#include <vector>

#include "bench.h"
#include "cubist/cubist.h"
#include "launcher/launch.h"
#include "launcher/launcher.h"
#include "model/decode_params.h"
#include "runtime/selected.h"

namespace cubist::bench {

/// A small decode call, in which the GPU is done before the host: everything about launching it,
/// through the library and bare.
class Call {
 public:
  /// max_kv_len is made long enough for the wanted kind of kernel.
  Call(const Bench& bench, runtime::Runtime& runtime, bool persistent);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const LaunchPlan& plan() const { return *ready_.plan; }

  /// cuLaunchKernelEx of the same kernel, parameters and attributes, all made beforehand.
  void launch_bare() const;
  void launch_selected() const { require(selected_->launch(args_, stream_)); }
  void launch_selection() const;  ///< cubist_selection_launch
  void launch_runtime() const;    ///< cubist_runtime_launch
  /// What launch_selected does, with a driver whose cuLaunchKernelEx does nothing.
  void launch_nothing() const;
  void synchronize() const;

 private:
  std::uint64_t allocate(std::uint64_t bytes, unsigned char fill);

  const Bench& bench_;
  std::vector<std::uint64_t> memory_;
  std::unique_ptr<runtime::Selected> selected_;
  launcher::CallArgs args_;
  cuda::CUstream stream_ = nullptr;
  mutable launcher::ReadyMemo memo_;
  std::unique_ptr<launcher::Launcher> idle_launcher_;
  mutable launcher::ReadyMemo idle_memo_;
  launcher::ReadyPlan ready_;
  CubistDecodeParams params_;
  std::unique_ptr<launcher::LaunchConfig> config_;

  cubist_runtime* c_runtime_ = nullptr;
  cubist_selection* c_selection_ = nullptr;
  cubist_attention_problem c_problem_ = CUBIST_ATTENTION_PROBLEM_INIT;
  cubist_device c_device_ = CUBIST_DEVICE_INIT;
  cubist_attention_args c_args_ = CUBIST_ATTENTION_ARGS_INIT;
};

}  // namespace cubist::bench
