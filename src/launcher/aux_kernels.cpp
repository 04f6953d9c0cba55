#include "launcher/aux_kernels.h"

#include <utility>

namespace cubist::launcher {
namespace {

/// "sm90a" for sm_90a: the arch in names of functions.
std::string with_arch(std::string stem, SmArch arch) {
  std::string name = std::move(stem);
  name += '_';
  for (const char c : to_string(arch)) {
    if (c != '_') name += c;
  }
  return name;
}

}  // namespace

std::string describe(const AuxKernel& kernel) {
  switch (kernel.kind) {
    case AuxKernel::Kind::kReduction:
      return std::string("cubist_reduce_o_") += to_string(kernel.dtype_o);
    case AuxKernel::Kind::kLse:
      return "cubist_lse";
    case AuxKernel::Kind::kFuseScales:
      break;
  }
  return "cubist_fuse_scales";
}

std::string reduction_kernel_name(Dtype dtype_o, SmArch arch) {
  return with_arch(describe({AuxKernel::Kind::kReduction, dtype_o}), arch);
}

std::string lse_kernel_name(SmArch arch) {
  return with_arch(describe({AuxKernel::Kind::kLse, Dtype::kUnknown}), arch);
}

std::string fuse_scales_kernel_name(SmArch arch) {
  return with_arch(describe({AuxKernel::Kind::kFuseScales, Dtype::kUnknown}), arch);
}

bool is_aux_kernel(const KernelRecord& record, const AuxKernel& wanted) {
  return record.name == with_arch(describe(wanted), record.traits.arch);
}

bool is_aux_kernel(const KernelRecord& record, const AuxKernel& wanted, std::uint32_t device_sm) {
  return runs_on(record.traits.arch, device_sm) && is_aux_kernel(record, wanted);
}

}  // namespace cubist::launcher
