#include "call.h"

#include <dlfcn.h>

#include "driver/device_query.h"
#include "launcher/decode_args.h"
#include "launcher/decode_maps.h"
#include "model/derived_problem.h"

namespace cubist::bench {
namespace {

using StreamCreate = cuda::CUresult (*)(cuda::CUstream*, unsigned);
using StreamDestroy = cuda::CUresult (*)(cuda::CUstream);

/// A driver function that only the bench uses.
template <class Function>
Function driver_function(const char* name) {
  static void* const library = dlopen(driver::libcuda_names()[0].c_str(), RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(library, name));
}

void require_c(cubist_status status) {
  if (status == CUBIST_STATUS_OK) return;
  std::fprintf(stderr, "%s\n", cubist_last_error_message());
  std::exit(1);
}

cubist_attention_problem small_problem(bool persistent) {
  cubist_attention_problem problem = CUBIST_ATTENTION_PROBLEM_INIT;
  problem.num_q_heads = 16;
  problem.num_kv_heads = 2;
  problem.batch = 1;
  problem.max_q_len = persistent ? 8 : 1;
  problem.max_kv_len = persistent ? 512 : 128;
  problem.page_size = 32;
  return problem;
}

AttentionProblem same_problem(const cubist_attention_problem& c) {
  AttentionProblem problem;
  problem.num_q_heads = c.num_q_heads;
  problem.num_kv_heads = c.num_kv_heads;
  problem.batch = c.batch;
  problem.max_q_len = c.max_q_len;
  problem.max_kv_len = c.max_kv_len;
  problem.page_size = c.page_size;
  return problem;
}

}  // namespace

Call::Call(const Bench& bench, runtime::Runtime& runtime, bool persistent)
    : bench_(bench), c_problem_(small_problem(persistent)) {
  const DeviceProfile device = require(driver::query_device(*bench.driver, 0));
  // The smallest batch that gets the wanted kind of kernel.
  for (int batch = 1; batch <= 64; batch *= 2) {
    c_problem_.batch = batch;
    selected_ = require(runtime.select(same_problem(c_problem_), device));
    const TileScheduler scheduler = selected_->selection().best().record->traits.scheduler;
    if ((scheduler == TileScheduler::kPersistent) == persistent) break;
  }
  const AttentionProblem problem = with_derived_fields(same_problem(c_problem_));
  const auto q_bytes = static_cast<std::uint64_t>(problem.sum_seq_q * problem.q_stride_tokens) * 2;
  const auto kv_bytes = static_cast<std::uint64_t>(problem.num_pages * problem.kv_stride_batch) * 2;
  args_.q = allocate(q_bytes, 0);
  args_.k = allocate(kv_bytes, 0);
  args_.v = allocate(kv_bytes, 0);
  args_.o = allocate(q_bytes, 0);
  args_.block_table = allocate(static_cast<std::uint64_t>(problem.num_pages) * 4, 0);
  args_.seq_lens_kv = allocate(static_cast<std::uint64_t>(problem.batch) * 4, 0);
  const std::vector<std::int32_t> lengths(static_cast<std::size_t>(problem.batch),
                                          problem.max_kv_len);
  require(bench.driver->table().cuMemcpyHtoD(args_.seq_lens_kv, lengths.data(), lengths.size() * 4),
          "cuMemcpyHtoD");
  args_.workspace_size = std::max<std::uint64_t>(require(selected_->workspace()).size, 256);
  args_.workspace = allocate(args_.workspace_size, 0);
  require(driver_function<StreamCreate>("cuStreamCreate")(&stream_, 1), "cuStreamCreate");

  launcher::Launcher* launcher = require(runtime.launcher());
  ready_ = require(launcher->ready(selected_->selection(), memo_, nullptr));
  require(launcher::fill_decode_params(problem, plan(), args_, params_));
  require(launcher::encode_decode_maps(*bench.driver, problem, plan(), args_, params_));
  config_ = std::make_unique<launcher::LaunchConfig>(plan(), stream_);

  driver::DriverTable idle = bench.driver->table();
  idle.cuLaunchKernelEx = [](const cuda::CUlaunchConfig*, cuda::CUfunction, void**, void**) {
    return cuda::CUDA_SUCCESS;
  };
  idle_launcher_ = std::make_unique<launcher::Launcher>(
      std::make_shared<driver::Driver>(idle),
      [&runtime](const KernelRecord& record) { return runtime.cubin(record); });

  const char* manifests[] = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"};
  cubist_runtime_options options = CUBIST_RUNTIME_OPTIONS_INIT;
  options.manifests = manifests;
  options.num_manifests = 1;
  options.store_dir = bench.store.c_str();
  require_c(cubist_runtime_open(&options, &c_runtime_));
  require_c(cubist_device_query(0, &c_device_));
  require_c(cubist_runtime_select(c_runtime_, &c_problem_, &c_device_, &c_selection_));
  const auto pointer = [](std::uint64_t address) { return reinterpret_cast<void*>(address); };
  c_args_.q = pointer(args_.q);
  c_args_.k = pointer(args_.k);
  c_args_.v = pointer(args_.v);
  c_args_.o = pointer(args_.o);
  c_args_.block_table = static_cast<const std::int32_t*>(pointer(args_.block_table));
  c_args_.seq_lens_kv = static_cast<const std::int32_t*>(pointer(args_.seq_lens_kv));
  c_args_.workspace = pointer(args_.workspace);
  c_args_.workspace_size = args_.workspace_size;
}

Call::~Call() {
  synchronize();
  require_c(cubist_selection_destroy(c_selection_));
  require_c(cubist_runtime_destroy(c_runtime_));
  driver_function<StreamDestroy>("cuStreamDestroy_v2")(stream_);
  for (const std::uint64_t address : memory_) bench_.driver->table().cuMemFree(address);
}

std::uint64_t Call::allocate(std::uint64_t bytes, unsigned char fill) {
  cuda::CUdeviceptr address = 0;
  require(bench_.driver->table().cuMemAlloc(&address, bytes), "cuMemAlloc");
  memory_.push_back(address);
  require(bench_.driver->table().cuMemsetD8Async(address, fill, bytes, nullptr), "cuMemsetD8Async");
  require(bench_.driver->table().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  return address;
}

void Call::launch_bare() const {
  void* parameters[] = {const_cast<CubistDecodeParams*>(&params_)};
  require(bench_.driver->table().cuLaunchKernelEx(&config_->get(), ready_.kernel->function,
                                                  parameters, nullptr),
          "cuLaunchKernelEx");
}

void Call::launch_nothing() const {
  const launcher::ReadyPlan ready =
      require(idle_launcher_->ready(selected_->selection(), idle_memo_, &stream_));
  CubistDecodeParams params;
  require(launcher::fill_decode_params(selected_->problem(), *ready.plan, args_, params));
  require(launcher::encode_decode_maps(idle_launcher_->driver(), selected_->problem(), *ready.plan,
                                       args_, params));
  require(launcher::launch_kernel(idle_launcher_->driver(), ready.kernel->function, *ready.plan,
                                  &params, stream_));
}

void Call::launch_selection() const {
  require_c(cubist_selection_launch(c_selection_, &c_args_, stream_));
}

void Call::launch_runtime() const {
  require_c(cubist_runtime_launch(c_runtime_, &c_problem_, &c_device_, &c_args_, stream_));
}

void Call::synchronize() const {
  require(bench_.driver->table().cuStreamSynchronize(stream_), "cuStreamSynchronize");
}

}  // namespace cubist::bench
