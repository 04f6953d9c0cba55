#include "gpu/aux_launch.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/file.h"
#include "launcher/aux_kernels.h"
#include "launcher/trtllm_gen/lse.h"
#include "launcher/trtllm_gen/reduction.h"
#include "launcher/trtllm_gen/workspace.h"

namespace cubist::test {

using namespace cubist::cuda;  // NOLINT(google-build-using-namespace)

namespace {

constexpr std::array<Dtype, 3> kOutputs = {Dtype::kBf16, Dtype::kFp16, Dtype::kE4m3};
constexpr std::size_t kGuardBytes = 256;
constexpr std::uint8_t kUntouched = 0xff;
constexpr std::uint64_t kMaxCubinBytes = 1 << 20;

template <class T>
T value_or_exit(Result<T> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(EXIT_FAILURE);
}

std::uint64_t address_of(const DeviceBuffer& buffer) {
  return reinterpret_cast<std::uint64_t>(buffer.as<std::uint8_t>());
}

}  // namespace

std::unique_ptr<AuxKernels> AuxKernels::load(const Device& device, const std::string& folder) {
  constexpr std::array<SmArch, 2> kArchs = {
      {{90, SmArch::Kind::kSpecific}, {100, SmArch::Kind::kFamily}}};
  const std::uint32_t sm = device.profile().sm;
  const auto* arch = std::find_if(kArchs.begin(), kArchs.end(),
                                  [sm](SmArch candidate) { return runs_on(candidate, sm); });
  if (arch == kArchs.end()) {
    std::fprintf(stderr, "no GPU test: no aux kernel is for compute capability %u\n", sm);
    return nullptr;
  }
  std::unique_ptr<AuxKernels> kernels(new AuxKernels(device));
  for (std::size_t i = 0; i < kOutputs.size(); ++i) {
    kernels->reduce_[i] =
        kernels->load_one(folder, launcher::reduction_kernel_name(kOutputs[i], *arch));
  }
  kernels->lse_ = kernels->load_one(folder, launcher::lse_kernel_name(*arch));
  kernels->fuse_scales_ = kernels->load_one(folder, launcher::fuse_scales_kernel_name(*arch));
  return kernels;
}

CUfunction AuxKernels::load_one(const std::string& folder, const std::string& name) const {
  const std::vector<std::uint8_t> bytes =
      value_or_exit(read_file(folder + "/" + name + ".cubin", kMaxCubinBytes));
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  device_.check(device_.table().cuModuleLoadData(&module, bytes.data()), "cuModuleLoadData");
  device_.check(device_.table().cuModuleGetFunction(&function, module, name.c_str()),
                "cuModuleGetFunction");
  return function;
}

void AuxKernels::launch(CUfunction function, const std::array<std::uint32_t, 3>& grid,
                        std::uint32_t block, void* params, bool pdl) const {
  CUlaunchAttribute attribute = {};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = grid[2];
  config.blockDimX = block;
  config.blockDimY = 1;
  config.blockDimZ = 1;
  config.attrs = &attribute;
  config.numAttrs = pdl ? 1 : 0;
  void* arguments[] = {params};
  device_.check(device_.table().cuLaunchKernelEx(&config, function, arguments, nullptr),
                "cuLaunchKernelEx");
}

void AuxKernels::reduce(Dtype dtype_o, const ReductionPlan& plan, CubistReduceParams params,
                        bool pdl) const {
  const auto which = std::find(kOutputs.begin(), kOutputs.end(), dtype_o) - kOutputs.begin();
  launch(reduce_.at(static_cast<std::size_t>(which)), plan.grid, plan.block, &params, pdl);
}

void AuxKernels::lse(const LsePlan& plan, CubistLseParams params, bool pdl) const {
  launch(lse_, plan.grid, plan.block, &params, pdl);
}

void AuxKernels::fuse_scales(CubistFuseScalesParams params, bool pdl) const {
  launch(fuse_scales_, {1, 1, 1}, 32, &params, pdl);
}

ReduceOnDevice::ReduceOnDevice(const AuxKernels& kernels, const ReduceCase& made,
                               const PartialResults& partial)
    : kernels_(kernels), made_(made), launch_(launch_of(made)) {
  const Device& device = kernels.device();
  const auto upload = [&device](const auto& host) {
    return std::make_unique<DeviceBuffer>(device, host);
  };
  const trtllm_gen::Workspace carved =
      trtllm_gen::carve_workspace(launch_.problem, launch_.plan, launch_.num_sms);
  stats_offset_ = carved.softmax_stats;
  workspace_image_.assign(carved.required_bytes + kGuardBytes, kUntouched);
  std::uint8_t* scratch = workspace_image_.data() + carved.scratch;
  std::memcpy(scratch, partial.partial_stats.data(), partial.partial_stats.size() * 4);
  std::memcpy(scratch + carved.partial_stats_bytes, partial.partial_o.data(),
              partial.partial_o.size() * 2);
  workspace_ = upload(workspace_image_);
  kv_lens_ = upload(made.kv_lens);
  cum_q_ = upload(partial.cum_seq_lens_q);
  topk_ = upload(made.topk_lens);
  sinks_ = upload(partial.sinks);
  scale_ = upload(std::vector<float>{partial.scale_log2});
  o_ = std::make_unique<DeviceBuffer>(device, o_bytes() + kGuardBytes);
  const std::int64_t lse_entries = made.sum_seq_q() * launch_.problem.lse_stride_tokens;
  lse_ = std::make_unique<DeviceBuffer>(device, static_cast<std::size_t>(lse_entries) * 4);
  poison_outputs();
}

void ReduceOnDevice::poison_outputs() {
  o_->fill(kUntouched);
  lse_->fill(kUntouched);
}

std::size_t ReduceOnDevice::o_bytes() const {
  const std::int64_t elements = made_.sum_seq_q() * made_.num_q_heads * made_.head_dim_vo();
  return static_cast<std::size_t>(elements) * dtype_bits(made_.dtype_o) / 8;
}

void ReduceOnDevice::set_device_scale(std::uint64_t address) {
  device_scale_ = address;
  launch_.problem.bmm1_scale.on_device = true;
}

trtllm_gen::Addresses ReduceOnDevice::addresses() const {
  trtllm_gen::Addresses a;
  a.o = address_of(*o_);
  a.workspace = address_of(*workspace_);
  a.seq_lens_kv = address_of(*kv_lens_);
  a.cum_seq_lens_q = address_of(*cum_q_);
  a.topk_lens = address_of(*topk_);
  a.sinks = address_of(*sinks_);
  a.lse = address_of(*lse_);
  a.bmm1_scale = device_scale_ != 0 ? device_scale_ : address_of(*scale_);
  return a;
}

void ReduceOnDevice::launch(bool pdl) const {
  const trtllm_gen::Addresses all = addresses();
  const CubistReduceParams params = value_or_exit(
      trtllm_gen::fill_reduction_params(launch_.problem, launch_.plan, launch_.num_sms, all));
  kernels_.reduce(made_.dtype_o, launch_.plan.reduction, params, pdl);
  if (!made_.wants_lse) return;
  const CubistLseParams lse = value_or_exit(
      trtllm_gen::fill_lse_params(launch_.problem, launch_.plan, launch_.num_sms, all));
  kernels_.lse(launch_.plan.lse, lse, pdl);
}

ReduceOutput ReduceOnDevice::output() const {
  kernels_.device().synchronize();
  ReduceOutput output;
  output.o = o_->download<std::uint8_t>();
  output.o.resize(o_bytes());
  if (!made_.wants_lse) return output;
  const auto entries = static_cast<std::size_t>(made_.sum_seq_q() * made_.num_q_heads);
  const auto workspace = workspace_->download<std::uint8_t>();
  output.softmax_stats.resize(2 * entries);
  std::memcpy(output.softmax_stats.data(), workspace.data() + stats_offset_, 8 * entries);
  const auto lse = lse_->download<float>();
  for (std::int64_t token = 0; token < made_.sum_seq_q(); ++token) {
    const auto first = lse.begin() + token * launch_.problem.lse_stride_tokens;
    output.lse.insert(output.lse.end(), first, first + made_.num_q_heads);
  }
  return output;
}

std::string ReduceOnDevice::strays() const {
  const auto o = o_->download<std::uint8_t>();
  const auto behind = o.begin() + static_cast<std::ptrdiff_t>(o_bytes());
  if (std::any_of(behind, o.end(), [](std::uint8_t byte) { return byte != kUntouched; })) {
    return "bytes behind O were written";
  }
  auto workspace = workspace_->download<std::uint8_t>();
  if (made_.wants_lse) {
    const auto entries = static_cast<std::size_t>(made_.sum_seq_q() * made_.num_q_heads);
    std::memset(workspace.data() + stats_offset_, kUntouched, 8 * entries);
  }
  if (workspace != workspace_image_) return "the workspace was written outside the statistics";
  const auto lse = lse_->download<std::uint32_t>();
  const auto stride = static_cast<std::size_t>(launch_.problem.lse_stride_tokens);
  for (std::size_t i = 0; i < lse.size(); ++i) {
    const bool owned = made_.wants_lse && i % stride < static_cast<std::size_t>(made_.num_q_heads);
    if (!owned && lse[i] != 0xffffffffU) return "LSE was written between its rows";
  }
  return "";
}

}  // namespace cubist::test
