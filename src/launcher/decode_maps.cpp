#include "launcher/decode_maps.h"

#include <algorithm>

namespace cubist::launcher {
namespace {

constexpr std::uint32_t kPanelElements = 64;
constexpr std::int32_t kTileTokens = 64;
constexpr std::uint64_t kElementBytes = 2;
// The block table alone says which pages exist, as for the kernels without maps.
constexpr std::uint64_t kAnyPage = 0x7fffffff;

TensorMapSpec describe(const AttentionProblem& p, std::string_view slot, std::uint64_t address) {
  const auto panels = static_cast<std::uint32_t>(p.head_dim_qk) / kPanelElements;
  const auto bytes = [](std::int64_t elements) {
    return static_cast<std::uint64_t>(elements) * kElementBytes;
  };
  TensorMapSpec spec;
  spec.slot = slot;
  spec.address = address;
  spec.type = p.dtype_k == Dtype::kBf16 ? TensorMapType::kBf16 : TensorMapType::kFp16;
  spec.rank = 5;
  spec.dims = {kPanelElements, static_cast<std::uint64_t>(p.page_size), panels,
               static_cast<std::uint64_t>(p.num_kv_heads), kAnyPage};
  spec.strides = {bytes(p.kv_stride_tokens), kPanelElements * kElementBytes,
                  bytes(p.kv_stride_heads), bytes(p.kv_stride_batch)};
  spec.box = {kPanelElements, static_cast<std::uint32_t>(std::min(p.page_size, kTileTokens)),
              p.page_size < kTileTokens ? 1U : panels, 1, 1};
  spec.swizzle = TensorMapSwizzle::k128B;
  return spec;
}

Status encode(const driver::Driver& driver, const TensorMapSpec& spec, CubistTensorMap& out) {
  static_assert(sizeof(cuda::CUtensorMap) == sizeof(CubistTensorMap));
  constexpr std::array<std::uint32_t, TensorMapSpec::kMaxRank> kDense = {1, 1, 1, 1, 1};
  const cuda::CUresult result = driver.table().cuTensorMapEncodeTiled(
      reinterpret_cast<cuda::CUtensorMap*>(&out), static_cast<cuda::CUtensorMapDataType>(spec.type),
      spec.rank, reinterpret_cast<void*>(spec.address), spec.dims.data(), spec.strides.data(),
      spec.box.data(), kDense.data(), cuda::CU_TENSOR_MAP_INTERLEAVE_NONE,
      cuda::CU_TENSOR_MAP_SWIZZLE_128B, cuda::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      cuda::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return driver.check(result, "cuTensorMapEncodeTiled");
}

}  // namespace

Result<std::array<TensorMapSpec, 2>> describe_decode_maps(const AttentionProblem& problem,
                                                          const CallArgs& args) {
  const std::array<TensorMapSpec, 2> specs = {describe(problem, "k", args.k),
                                              describe(problem, "v", args.v)};
  for (const TensorMapSpec& spec : specs) CUBIST_RETURN_IF_ERROR(check_tensor_map(spec));
  return specs;
}

Status encode_decode_maps(const driver::Driver& driver, const AttentionProblem& problem,
                          const LaunchPlan& plan, const CallArgs& args,
                          CubistDecodeParams& params) {
  if (plan.record->traits.scheduler != TileScheduler::kPersistent) return {};
  CUBIST_ASSIGN_OR_RETURN(const auto specs, describe_decode_maps(problem, args));
  CUBIST_RETURN_IF_ERROR(encode(driver, specs[0], params.k_map));
  return encode(driver, specs[1], params.v_map);
}

}  // namespace cubist::launcher
