#include "launcher/aux_kernels.h"

#include <string_view>

namespace cubist::launcher {
namespace {

/// "sm90a" for sm_90a: the arch in names of functions.
std::string with_arch(std::string_view stem, SmArch arch) {
  std::string name(stem);
  name += '_';
  for (const char c : to_string(arch)) {
    if (c != '_') name += c;
  }
  return name;
}

std::string name_of(const AuxKernel& wanted, SmArch arch) {
  switch (wanted.kind) {
    case AuxKernel::Kind::kReduction:
      return reduction_kernel_name(wanted.dtype_o, arch);
    case AuxKernel::Kind::kLse:
      return lse_kernel_name(arch);
    case AuxKernel::Kind::kFuseScales:
      break;
  }
  return fuse_scales_kernel_name(arch);
}

}  // namespace

std::string reduction_kernel_name(Dtype dtype_o, SmArch arch) {
  return with_arch(std::string("cubist_reduce_o_") += to_string(dtype_o), arch);
}

std::string lse_kernel_name(SmArch arch) { return with_arch("cubist_lse", arch); }

std::string fuse_scales_kernel_name(SmArch arch) { return with_arch("cubist_fuse_scales", arch); }

bool is_aux_kernel(const KernelRecord& record, const AuxKernel& wanted, std::uint32_t device_sm) {
  return runs_on(record.traits.arch, device_sm) &&
         record.name == name_of(wanted, record.traits.arch);
}

}  // namespace cubist::launcher
