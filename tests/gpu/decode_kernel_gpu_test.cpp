// Every decode kernel of manifests/cubist-decode.json by itself, with any geometry it must take, on
// random problems against a float64 reference.
//   decode_kernel_gpu_test [--manifest FILE] [--cases N] [--seed S] [--only PART_OF_NAME]
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
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--manifest") options.manifest = argv[i + 1];
    if (flag == "--cases") options.cases = std::atoi(argv[i + 1]);
    if (flag == "--seed") options.seed = std::strtoull(argv[i + 1], nullptr, 10);
    if (flag == "--only") options.only = argv[i + 1];
  }
  return options;
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
  for (std::size_t i = 0; i < static_cast<std::size_t>(in_k ? problem.head_dim_vo : 1); ++i) {
    const std::uint16_t bits = output.o[row + i];
    if (bits == 0xffff || !std::isnan(decode_number(kernel.variant.dtype_q, bits))) {
      return "a NaN in " + std::string(in_k ? "K" : "V") + " is hidden: " + made.text();
    }
  }
  return {};
}

int main_of_test(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::unique_ptr<Device> device = Device::open();
  if (!device) return 77;
  const std::vector<LoadedVariant> kernels = load_variants(*device, options.manifest, options.only);
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
