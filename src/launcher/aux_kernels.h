#pragma once

#include <cstdint>
#include <string>

#include "model/dtype.h"
#include "model/kernel_record.h"
#include "model/sm_arch.h"

namespace cubist::launcher {

// The kernels of manifests/cubist-aux.json are found by name, which is also their function's. A
// device takes the record that runs on it and has the name for its own arch.

/// "cubist_reduce_o_bf16_sm90a"; dtype_o bf16, fp16 or e4m3.
std::string reduction_kernel_name(Dtype dtype_o, SmArch arch);
/// "cubist_lse_sm90a"
std::string lse_kernel_name(SmArch arch);
/// "cubist_fuse_scales_sm90a"
std::string fuse_scales_kernel_name(SmArch arch);

/// What to look for among a manifest's records.
struct AuxKernel {
  enum class Kind : std::uint8_t { kReduction, kLse, kFuseScales };
  Kind kind = Kind::kReduction;
  Dtype dtype_o = Dtype::kBf16;  ///< of a reduction
};

/// "cubist_reduce_o_bf16": for people.
std::string describe(const AuxKernel& kernel);

/// Whether the record is that kernel, for whatever device.
bool is_aux_kernel(const KernelRecord& record, const AuxKernel& wanted);
/// Whether the record is that kernel and runs on a device of compute capability `device_sm`.
bool is_aux_kernel(const KernelRecord& record, const AuxKernel& wanted, std::uint32_t device_sm);

}  // namespace cubist::launcher
