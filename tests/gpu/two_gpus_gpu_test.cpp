// One process, one runtime, two GPUs: a module on each, launches on both at once, tensors of the
// other one named. Exit code 77: fewer than two GPUs, or none the kernels are for. The stand-in for
// libcuda with two devices runs it as well (two_gpus_stand_in).

// First, since it has Catch define its runner.
#include "run_unless.h"
//
#include <thread>
#include <vector>

#include "launcher_rig.h"

namespace cubist {
namespace {

using Catch::Matchers::Contains;

constexpr int kGpus = 2;

/// Makes a context current for one scope.
class Current {
 public:
  explicit Current(cuda::CUcontext context) {
    pushed_ = driver_of_process()->table().cuCtxPushCurrent(context) == cuda::CUDA_SUCCESS;
  }
  ~Current() {
    cuda::CUcontext popped = nullptr;
    if (pushed_) driver_of_process()->table().cuCtxPopCurrent(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  bool pushed_ = false;
};

/// A GPU's primary context with one call's tensors in it.
struct Gpu {
  Gpu(int ordinal, runtime::Selected& selected)
      : session(GpuSession::open(*driver_of_process(), ordinal).value()), call(*session, selected) {
    REQUIRE(driver_of_process()->table().cuCtxGetCurrent(&context) == cuda::CUDA_SUCCESS);
  }

  std::unique_ptr<GpuSession> session;
  Call call;
  cuda::CUcontext context = nullptr;
};

/// Small, since the stand-in computes it on the CPU; split over CTAs all the same.
AttentionProblem small_problem() {
  AttentionProblem problem;
  problem.head_dim_qk = 64;
  problem.num_q_heads = 8;
  problem.num_kv_heads = 2;
  problem.batch = 2;
  problem.max_kv_len = 1500;
  problem.page_size = 32;
  return problem;
}

struct TwoGpus {
  TwoGpus() {
    runtime::RuntimeOptions options;
    options.manifests = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json"};
    options.store_dir = store.path();
    options.offline = true;
    runtime = runtime::Runtime::open(options).value();
    const DeviceProfile device = driver::query_device(*driver_of_process(), 0).value();
    selected = runtime->select(small_problem(), device).value();
    for (int ordinal = 0; ordinal < kGpus; ++ordinal) {
      gpus.push_back(std::make_unique<Gpu>(ordinal, *selected));
    }
  }
  ~TwoGpus() {
    while (!gpus.empty()) gpus.pop_back();  // contexts go in the order in which they came, reversed
  }

  test::Scratch store;
  std::shared_ptr<runtime::Runtime> runtime;
  std::unique_ptr<runtime::Selected> selected;
  std::vector<std::unique_ptr<Gpu>> gpus;
};

/// Launches `count` times on the default stream of the GPU's context; the first failure.
std::string launch_often(runtime::Selected& selected, const Gpu& gpu, int count) {
  const Current current(gpu.context);
  for (int i = 0; i < count; ++i) {
    const Status status = selected.launch(gpu.call.args, nullptr);
    if (!status) return status.error().message();
  }
  const driver::Driver& driver = *driver_of_process();
  const Status status =
      driver.check(driver.table().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  return status ? "" : status.error().message();
}

TEST_CASE(
    "one selection is launched on two GPUs by two threads at once: a module and the same bits") {
  TwoGpus rig;
  std::vector<std::string> failures(kGpus);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kGpus; ++i) {
    threads.emplace_back([&, i] { failures[i] = launch_often(*rig.selected, *rig.gpus[i], 25); });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<std::vector<std::uint16_t>> outputs;
  for (std::size_t i = 0; i < kGpus; ++i) {
    CHECK(failures[i] == "");
    const Current current(rig.gpus[i]->context);
    outputs.push_back(rig.gpus[i]->call.output());
    rig.gpus[i]->call.check(outputs.back());
  }
  CHECK(outputs[0] == outputs[1]);
  CHECK(rig.runtime->load_counters().loads == kGpus);
}

TEST_CASE("one thread goes from GPU to GPU, and each launch takes the module of its context") {
  TwoGpus rig;
  for (int turn = 0; turn < 10; ++turn) {
    for (const auto& gpu : rig.gpus) CHECK(launch_often(*rig.selected, *gpu, 1) == "");
  }
  CHECK(rig.runtime->load_counters().loads == kGpus);
}

TEST_CASE("kernels are prepared on each GPU, once on each, and unloaded from both") {
  TwoGpus rig;
  for (const auto& gpu : rig.gpus) {
    const Current current(gpu->context);
    const auto report = rig.runtime->prepare({});
    REQUIRE(report.has_value());
    CHECK(report->status().has_value());
    CHECK(report->num_loaded() == report->kernels.size());
    CHECK(rig.runtime->prepare({})->num_present() == report->kernels.size());
  }
  rig.selected.reset();
  rig.runtime.reset();
}

TEST_CASE("a tensor of the other GPU is named by a look behind the addresses") {
  TwoGpus rig;
  const Current current(rig.gpus[0]->context);
  CHECK(rig.selected->check(rig.gpus[0]->call.args, nullptr).has_value());
  launcher::CallArgs mixed = rig.gpus[0]->call.args;
  mixed.seq_lens_kv = rig.gpus[1]->call.args.seq_lens_kv;
  const Status status = rig.selected->check(mixed, nullptr);
  REQUIRE_FALSE(status.has_value());
  CHECK_THAT(status.error().message(), Contains("seq_lens_kv") && Contains("memory of device 1"));
}

/// Why there is nothing to test here; empty if there is.
std::string reason_to_skip() {
  const auto driver = driver::Driver::open();
  if (!driver) return driver.error().message();
  const auto devices = driver::query_devices(**driver);
  if (!devices) return devices.error().message();
  if (devices->size() < kGpus) return fmt::format("{} GPU(s); two are needed", devices->size());
  for (int i = 0; i < kGpus; ++i) {
    const std::uint32_t sm = (*devices)[static_cast<std::size_t>(i)].sm;
    if (runs_on({90, SmArch::Kind::kSpecific}, sm)) continue;
    return fmt::format("the shipped kernels are for sm_90a, GPU {} is sm_{}", i, sm);
  }
  return {};
}

}  // namespace
}  // namespace cubist

int main(int argc, char** argv) {
  return cubist::test::run_unless(cubist::reason_to_skip(), argc, argv);
}
