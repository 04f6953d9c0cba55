// Every decode kernel of manifests/cubist-decode.json by itself, with any geometry it must take, on
// random problems against a float64 reference.
//   decode_kernel_gpu_test [--manifest FILE] [--cases N] [--seed S] [--only PART_OF_NAME]
//                          [--output TYPE]     kernels that read the output type: this one alone
// Exit code 77: no GPU, or none the kernels are for.

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <string>

#include "gpu/decode_launch.h"
#include "gpu/decode_modules.h"
#include "gpu/decode_tally.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

struct Options {
  std::string manifest = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";
  int cases = 660;
  std::uint64_t seed = 1;
  std::string only;
  std::string output;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--manifest") options.manifest = argv[i + 1];
    if (flag == "--cases") options.cases = std::atoi(argv[i + 1]);
    if (flag == "--seed") options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--only") options.only = argv[i + 1];
    if (flag == "--output") options.output = argv[i + 1];
  }
  return options;
}

/// Every kernel with every output it can write, or with one.
std::vector<LoadedVariant> with_outputs(const std::vector<LoadedVariant>& kernels,
                                        const std::string& output) {
  std::vector<LoadedVariant> all;
  for (const LoadedVariant& kernel : kernels) {
    for (const Dtype dtype : {Dtype::kBf16, Dtype::kFp16, Dtype::kE4m3, Dtype::kE2m1}) {
      if (!kernel.variant.dynamic_dtype_o && dtype != kernel.variant.dtype_o) continue;
      if (!output.empty() && output != to_string(dtype)) continue;
      all.push_back(kernel);
      all.back().variant.dtype_o = dtype;
      if (kernel.variant.dynamic_dtype_o) {
        all.back().variant.name += " " + std::string(to_string(dtype));
      }
    }
  }
  return all;
}

/// Launches twice in a row, the second over the first's outputs, and once more from poisoned ones:
/// the counters must be ready for the next launch, and the bits must be the same.
DecodeErrors launch_and_check(const Device& device, const LoadedVariant& kernel,
                              const DecodeCase& made, const DecodeAnswer& answer) {
  DecodeTensors tensors(device, kernel.variant, made);
  DecodeLaunch call(device, kernel.variant, made, tensors);
  for (int i = 0; i < 2; ++i) launch(device, kernel, call.params(), call.grid(), made.pdl);
  device.synchronize();
  const DecodeOutput first = tensors.output();
  tensors.poison();
  call.poison();
  launch(device, kernel, call.params(), call.grid(), made.pdl);
  device.synchronize();
  const DecodeOutput second = tensors.output();
  DecodeErrors errors = check_output(kernel.variant, made, answer, second);
  if (errors.failure.empty() && !same_bits(first, second)) {
    errors.failure = "two launches gave different bits";
  }
  if (errors.failure.empty() && !call.counters_are_zero()) {
    errors.failure = "a counter is not zero after the launch";
  }
  return errors;
}

/// A NaN in a key or a value that some rows see must show in those rows: nothing may hide it.
/// Tokens before it see no NaN in K; one in V may spread to them (kernels/decode/README.md).
std::string find_hidden_nan(const Device& device, const LoadedVariant& kernel, std::uint64_t seed) {
  DecodeCase made = make_decode_case(kernel.variant, seed);
  DecodeProblem& problem = made.problem;
  if (problem.sum_seq_q() == 0 || problem.seq_lens_kv[0] == 0 || problem.cum_seq_lens_q[1] == 0) {
    return {};
  }
  const bool in_k = made.one_copy || seed % 2 == 0;
  const int key = problem.seq_lens_kv[0] - 1;  // the first sequence's last token sees its own key
  const std::int64_t page = problem.block_table[static_cast<std::size_t>(key / problem.page_size)];
  const auto at = static_cast<std::size_t>(page * problem.kv_stride_pages +
                                           key % problem.page_size * problem.kv_stride_tokens);
  (in_k ? problem.k : problem.v)[at] = std::numeric_limits<float>::quiet_NaN();
  DecodeTensors tensors(device, kernel.variant, made);
  DecodeLaunch call(device, kernel.variant, made, tensors);
  launch(device, kernel, call.params(), call.grid(), made.pdl);
  device.synchronize();
  const DecodeOutput output = tensors.output();
  const auto row = static_cast<std::size_t>((problem.cum_seq_lens_q[1] - 1) * made.o_stride_tokens);
  const Dtype dtype_o = kernel.variant.dtype_o;
  for (std::size_t i = 0; i < static_cast<std::size_t>(in_k ? problem.head_dim_vo : 1); ++i) {
    // e2m1 has no NaN: the block's scale has.
    const auto scale = static_cast<std::int64_t>(i) / launcher::kNvfp4BlockElements;
    const bool found =
        dtype_o == Dtype::kE2m1
            ? output.o_sf[static_cast<std::size_t>(block_scales_of(made).offset(
                  problem.cum_seq_lens_q[1] - 1 + made.o_sf_start_index, scale))] == 0x7f
            : output.o[row + i] != poison_of(dtype_o) &&
                  std::isnan(decode_number(dtype_o, output.o[row + i]));
    if (!found) {
      return "a NaN in " + std::string(in_k ? "K" : "V") + " is hidden: " + made.text();
    }
  }
  return {};
}

int main_of_test(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::unique_ptr<Device> device = Device::open();
  if (!device) return 77;
  const std::vector<LoadedVariant> kernels =
      with_outputs(load_variants(*device, options.manifest, options.only), options.output);
  if (kernels.empty()) return 77;
  std::printf("%s, %d SMs\n", device->profile().name.c_str(), device->profile().num_sms);

  DecodeTally tally;
  std::atomic<int> next{0};
  std::mutex gpu;
  on_all_cores([&] {
    device->make_current();
    for (int i = next++; i < options.cases; i = next++) {
      const LoadedVariant& kernel = kernels[static_cast<std::size_t>(i) % kernels.size()];
      const std::uint64_t seed = options.seed * 1000003 + static_cast<std::uint64_t>(i);
      const DecodeCase made = make_decode_case(kernel.variant, seed);
      const DecodeAnswer answer = decode_reference(made.problem);
      std::unique_lock lock(gpu);
      const DecodeErrors errors = launch_and_check(*device, kernel, made, answer);
      lock.unlock();
      tally.add(kernel.variant, kernel.variant.name, std::to_string(i) + ", " + made.text(), errors,
                answer.lse.size());
    }
  });

  int hidden = 0;
  for (std::size_t i = 0; i < 2 * kernels.size(); ++i) {
    const LoadedVariant& kernel = kernels[i / 2];
    const std::string problem = find_hidden_nan(*device, kernel, options.seed * 7919 + i);
    if (problem.empty()) continue;
    ++hidden;
    std::printf("FAILED %s: %s\n", kernel.variant.name.c_str(), problem.c_str());
  }
  tally.print();
  return tally.failures() == 0 && hidden == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) { return cubist::test::main_of_test(argc, argv); }
