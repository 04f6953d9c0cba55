// The aux kernels on a GPU: the reduction and the LSE against float64 attention, the fuse kernel
// against the host to the bit, and the three in a chain of overlapping launches.
//   aux_kernels_gpu_test [--cubins FOLDER] [--reduced]
// Exit code 77: no GPU, or none the kernels are for.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "gpu/aux_launch.h"
#include "gpu/random.h"
#include "launcher/scales.h"

namespace cubist::test {
namespace {

struct Options {
  std::string cubins = CUBIST_SOURCE_DIR "/kernels/prebuilt/aux";
  bool reduced = false;
};

struct Tally {
  int cases = 0;
  std::int64_t rows = 0;
  ReduceErrors worst;

  void add(const ReduceCase& made, const ReduceErrors& errors) {
    ++cases;
    rows += made.sum_seq_q() * made.num_q_heads;
    worst.attention = std::max(worst.attention, errors.attention);
    worst.joined = std::max(worst.joined, errors.joined);
    worst.lse = std::max(worst.lse, errors.lse);
  }
  void print(const std::string& name) const {
    std::printf("%-34s %4d cases %7lld rows  attention %.3f  joined %.3f  LSE %.1e\n", name.c_str(),
                cases, static_cast<long long>(rows), worst.attention, worst.joined, worst.lse);
  }
};

bool same_bits(const ReduceOutput& a, const ReduceOutput& b) {
  return a.o == b.o && a.lse.size() == b.lse.size() &&
         (a.lse.empty() || std::memcmp(a.lse.data(), b.lse.data(), a.lse.size() * 4) == 0);
}

/// All cases, references side by side and the GPU one at a time.
class Cases {
 public:
  Cases(const AuxKernels& kernels, bool reduced)
      : kernels_(kernels), cases_(reduce_cases(reduced)) {}

  int run() {
    std::vector<std::thread> threads;
    const unsigned count = std::max(1U, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& [name, tally] : tallies_) tally.print(name);
    std::printf("reduction and LSE: %d cases, %d failed\n", static_cast<int>(cases_.size()),
                failures_);
    return failures_;
  }

 private:
  void work() {
    kernels_.device().make_current();
    for (std::size_t i = next_++; i < cases_.size(); i = next_++) {
      const ReduceCase& made = cases_[i];
      const PartialResults partial = partial_results(made);
      const std::lock_guard lock(mutex_);
      record(made, check(made, partial));
    }
  }

  /// Twice, once with launches that may overlap: the same bits, nothing else touched.
  ReduceErrors check(const ReduceCase& made, const PartialResults& partial) {
    ReduceOnDevice launch(kernels_, made, partial);
    launch.launch(false);
    const ReduceOutput first = launch.output();
    launch.poison_outputs();
    launch.launch(true);
    const ReduceOutput second = launch.output();
    ReduceErrors errors = check_reduction_output(made, partial, second);
    if (errors.failure.empty()) errors.failure = launch.strays();
    if (errors.failure.empty() && !same_bits(first, second)) {
      errors.failure = "two launches gave different bits";
    }
    return errors;
  }

  void record(const ReduceCase& made, const ReduceErrors& errors) {
    const std::string types =
        "Q " + std::string(to_string(made.dtype_q)) + ", O " + std::string(to_string(made.dtype_o));
    tallies_[types].add(made, errors);
    tallies_["tile_q " + std::to_string(made.tile_q) + ", " + std::to_string(made.columns) +
             " columns" + (made.groups_tokens ? ", grouped" : "")]
        .add(made, errors);
    if (errors.failure.empty()) return;
    ++failures_;
    std::printf("FAILED %s\n  %s\n", made.text().c_str(), errors.failure.c_str());
  }

  const AuxKernels& kernels_;
  const std::vector<ReduceCase> cases_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::map<std::string, Tally> tallies_;
  int failures_ = 0;
};

/// Sets of five scales, over 80 powers of two and both signs, fused on the GPU and on the host.
int fuse_scales_differ(const AuxKernels& kernels, int sets) {
  Random random(11);
  std::vector<float> scales(static_cast<std::size_t>(sets) * 5);
  for (float& scale : scales) {
    scale = random.normal() * std::exp2(static_cast<float>(random.between(-40, 40)));
  }
  DeviceBuffer input(kernels.device(), scales);
  DeviceBuffer output(kernels.device(), static_cast<std::size_t>(sets) * 8);
  output.fill(0xff);
  for (int i = 0; i < sets; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CubistFuseScalesParams params = {};
    params.q = input.as<float>(5 * at);
    params.k = input.as<float>(5 * at + 1);
    params.sm = i % 2 == 0 ? input.as<float>(5 * at + 2) : nullptr;
    params.sm_value = i % 2 == 0 ? 1e9F : scales[5 * at + 2];
    params.v = input.as<float>(5 * at + 3);
    params.o = input.as<float>(5 * at + 4);
    params.bmm1_scale_log2 = output.as<float>(2 * at);
    params.bmm2_scale = output.as<float>(2 * at + 1);
    kernels.fuse_scales(params, true);
  }
  kernels.device().synchronize();
  const auto fused = output.download<float>();
  int differ = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(sets); ++i) {
    const float* s = &scales[5 * i];
    const launcher::FusedScales host = launcher::fuse_scales(s[0], s[1], s[2], s[3], s[4]);
    const float expected[2] = {host.bmm1_log2, host.bmm2};
    if (std::memcmp(expected, &fused[2 * i], sizeof(expected)) != 0) ++differ;
  }
  std::printf("fused scales: %d sets, %d differ from the host's bits\n", sets, differ);
  return differ;
}

/// Fuse -> reduction -> LSE, every launch allowed to overlap the one before it and with a scale of
/// its own, against the same with a wait after each.
int chain_differs(const AuxKernels& kernels, int rounds) {
  ReduceCase made;
  made.columns = 512;
  made.max_q_len = 2;
  made.kv_lens = {700, 129, 5};
  made.ctas_per_tile = 4;
  const PartialResults partial = partial_results(made);
  std::vector<float> sm_scales;
  for (int i = 0; i < rounds; ++i) sm_scales.push_back(0.05F + 0.01F * static_cast<float>(i));
  DeviceBuffer input(kernels.device(), sm_scales);
  DeviceBuffer fused(kernels.device(), std::size_t{8});
  std::vector<std::unique_ptr<ReduceOnDevice>> launches;
  for (int i = 0; i < rounds; ++i) {
    launches.push_back(std::make_unique<ReduceOnDevice>(kernels, made, partial));
    launches.back()->set_device_scale(reinterpret_cast<std::uint64_t>(fused.as<float>()));
  }
  const auto run = [&](bool overlap) {
    for (int i = 0; i < rounds; ++i) {
      CubistFuseScalesParams params = {};
      params.sm = input.as<float>(static_cast<std::size_t>(i));
      params.q_value = params.k_value = params.v_value = params.o_value = 1.0F;
      params.bmm1_scale_log2 = fused.as<float>();
      params.bmm2_scale = fused.as<float>(1);
      kernels.fuse_scales(params, overlap);
      if (!overlap) kernels.device().synchronize();
      launches[static_cast<std::size_t>(i)]->launch(overlap);
      if (!overlap) kernels.device().synchronize();
    }
  };
  run(false);
  std::vector<ReduceOutput> apart;
  for (const auto& launch : launches) apart.push_back(launch->output());
  for (const auto& launch : launches) launch->poison_outputs();
  kernels.device().synchronize();
  run(true);
  int differ = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    if (!same_bits(apart[i], launches[i]->output())) ++differ;
    if (i > 0 && same_bits(apart[i], apart[i - 1])) ++differ;  // the scale must matter
  }
  std::printf("chained with overlap: %d rounds, %d differ\n", rounds, differ);
  return differ;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--reduced") options.reduced = true;
    if (flag == "--cubins" && i + 1 < argc) options.cubins = argv[++i];
  }
  return options;
}

int main_of_test(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::unique_ptr<Device> device = Device::open();
  if (!device) return 77;
  const std::unique_ptr<AuxKernels> kernels = AuxKernels::load(*device, options.cubins);
  if (!kernels) return 77;
  std::printf("%s, %d SMs\n", device->profile().name.c_str(), device->profile().num_sms);
  const int failures = Cases(*kernels, options.reduced).run() +
                       fuse_scales_differ(*kernels, options.reduced ? 50 : 5000) +
                       chain_differs(*kernels, options.reduced ? 4 : 100);
  std::printf("%s\n", failures == 0 ? "passed" : "FAILED");
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) { return cubist::test::main_of_test(argc, argv); }
