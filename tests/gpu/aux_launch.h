#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu/aux_case.h"
#include "gpu/aux_reference.h"
#include "gpu/device.h"
#include "launcher/trtllm_gen/arguments.h"
#include "model/aux_params.h"
#include "model/sm_arch.h"

namespace cubist::test {

/// The aux kernels loaded into the device's context, until the process ends.
class AuxKernels {
 public:
  /// Null, with the reason on standard error, where none is for the device. Ends the program where
  /// a cubin of `folder` is missing or does not load.
  static std::unique_ptr<AuxKernels> load(const Device& device, const std::string& folder);

  void reduce(Dtype dtype_o, const ReductionPlan& plan, CubistReduceParams params, bool pdl) const;
  void lse(const LsePlan& plan, CubistLseParams params, bool pdl) const;
  void fuse_scales(CubistFuseScalesParams params, bool pdl) const;
  const Device& device() const { return device_; }

 private:
  explicit AuxKernels(const Device& device) : device_(device) {}
  cuda::CUfunction load_one(const std::string& folder, const std::string& name) const;
  void launch(cuda::CUfunction function, const std::array<std::uint32_t, 3>& grid,
              std::uint32_t block, void* params, bool pdl) const;

  const Device& device_;
  std::array<cuda::CUfunction, 3> reduce_{};  ///< by O: bf16, fp16, e4m3
  cuda::CUfunction lse_ = nullptr;
  cuda::CUfunction fuse_scales_ = nullptr;
};

/// The memory of one reduction on the device. Outputs, and guards behind them, start as 0xff.
class ReduceOnDevice {
 public:
  ReduceOnDevice(const AuxKernels& kernels, const ReduceCase& made, const PartialResults& partial);

  /// The reduction, then the LSE where it is wanted, on the default stream.
  void launch(bool pdl) const;
  /// Takes the softmax scale from this device float from now on.
  void set_device_scale(std::uint64_t address);
  /// Waits and downloads.
  ReduceOutput output() const;
  /// What was written where nothing may be: "" if nothing was. After output().
  std::string strays() const;
  void poison_outputs();

 private:
  trtllm_gen::Addresses addresses() const;
  std::size_t o_bytes() const;

  const AuxKernels& kernels_;
  const ReduceCase& made_;
  ReduceLaunch launch_;
  std::vector<std::uint8_t> workspace_image_;  ///< as uploaded
  std::uint64_t stats_offset_ = 0;
  std::uint64_t device_scale_ = 0;
  std::unique_ptr<DeviceBuffer> workspace_, o_, lse_, kv_lens_, cum_q_, topk_, sinks_, scale_;
};

}  // namespace cubist::test
