#include "launcher/encode_tensor_map.h"

namespace cubist::launcher {

Status encode_tensor_map(const driver::Driver& driver, const TensorMapSpec& spec, void* out) {
  CUBIST_RETURN_IF_ERROR(check_tensor_map(spec));
  constexpr std::array<std::uint32_t, TensorMapSpec::kMaxRank> kDense = {1, 1, 1, 1, 1};
  const cuda::CUresult result = driver.table().cuTensorMapEncodeTiled(
      static_cast<cuda::CUtensorMap*>(out), static_cast<cuda::CUtensorMapDataType>(spec.type),
      spec.rank,
      reinterpret_cast<void*>(spec.address),  // NOLINT(performance-no-int-to-ptr): a device address
      spec.dims.data(), spec.strides.data(), spec.box.data(), kDense.data(),
      cuda::CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<cuda::CUtensorMapSwizzle>(spec.swizzle),
      cuda::CU_TENSOR_MAP_L2_PROMOTION_L2_128B, cuda::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == cuda::CUDA_SUCCESS) return {};
  Status status = driver.check(result, "cuTensorMapEncodeTiled");
  return forward_error(status, fmt::format("tensor '{}'", spec.slot));
}

}  // namespace cubist::launcher
