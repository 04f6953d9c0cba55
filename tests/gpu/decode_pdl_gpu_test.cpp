// The kernel before appends the new tokens' K and V; the decode kernel behind it, launched by
// programmatic dependent launch, must not have read them early, however slow the append is.
//   decode_pdl_gpu_test [--manifest FILE] [--cases N]
// Exit code 77: no GPU, or none the kernels are for.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

#include "gpu/decode_launch.h"
#include "gpu/decode_modules.h"

namespace cubist::test {
namespace {

using namespace cubist::cuda;  // NOLINT(google-build-using-namespace)

/// Lets the following kernel start, waits 20 us, then copies [source, source + 16 count) to target.
constexpr const char* kAppendPtx = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry append(.param .u64 target, .param .u64 source, .param .u64 count)
{
  .reg .pred %p<3>;
  .reg .b32 %r<8>;
  .reg .b64 %d<16>;
  griddepcontrol.launch_dependents;
  griddepcontrol.wait;
  mov.u64 %d1, %globaltimer;
  add.u64 %d1, %d1, 20000;
SPIN:
  mov.u64 %d2, %globaltimer;
  setp.lt.u64 %p1, %d2, %d1;
  @%p1 bra SPIN;
  ld.param.u64 %d3, [target];
  ld.param.u64 %d4, [source];
  ld.param.u64 %d5, [count];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mad.lo.u32 %r5, %r1, %r2, %r3;
  mul.lo.u32 %r6, %r2, %r4;
  cvt.u64.u32 %d6, %r5;
  cvt.u64.u32 %d7, %r6;
COPY:
  setp.ge.u64 %p2, %d6, %d5;
  @%p2 bra DONE;
  shl.b64 %d8, %d6, 4;
  add.u64 %d9, %d3, %d8;
  add.u64 %d10, %d4, %d8;
  ld.global.v2.u64 {%d11, %d12}, [%d10];
  st.global.v2.u64 [%d9], {%d11, %d12};
  add.u64 %d6, %d6, %d7;
  bra COPY;
DONE:
  ret;
}
)";

class Append {
 public:
  explicit Append(const Device& device) : device_(device) {
    CUmodule module = nullptr;
    device.check(device.table().cuModuleLoadData(&module, kAppendPtx), "cuModuleLoadData");
    device.check(device.table().cuModuleGetFunction(&function_, module, "append"),
                 "cuModuleGetFunction");
  }
  void operator()(void* target, const void* source, std::size_t bytes) const {
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {};
    config.gridDimX = 16;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.blockDimX = 256;
    config.attrs = &attribute;
    config.numAttrs = 1;
    std::uint64_t count = bytes / 16;
    void* arguments[] = {&target, &source, &count};
    device_.check(device_.table().cuLaunchKernelEx(&config, function_, arguments, nullptr),
                  "cuLaunchKernelEx");
  }

 private:
  const Device& device_;
  CUfunction function_ = nullptr;
};

/// The same problem before its new tokens are appended: NaN where they will be.
DecodeCase before_append(const DecodeCase& made) {
  DecodeCase before = made;
  DecodeProblem& problem = before.problem;
  for (int sequence = 0; sequence < problem.batch(); ++sequence) {
    const auto at = static_cast<std::size_t>(sequence);
    const int new_tokens = problem.cum_seq_lens_q[at + 1] - problem.cum_seq_lens_q[at];
    const int length = problem.seq_lens_kv[at];
    for (int key = std::max(0, length - new_tokens); key < length; ++key) {
      const std::int64_t page =
          problem.block_table[at * static_cast<std::size_t>(problem.max_pages_per_seq) +
                              static_cast<std::size_t>(key / problem.page_size)];
      for (int head = 0; head < problem.num_kv_heads; ++head) {
        const auto row = static_cast<std::size_t>(
            page * problem.kv_stride_pages + head * problem.kv_stride_heads +
            key % problem.page_size * problem.kv_stride_tokens);
        for (std::size_t i = row; i < row + static_cast<std::size_t>(problem.head_dim); ++i) {
          problem.k[i] = problem.v[i] = std::numeric_limits<float>::quiet_NaN();
        }
      }
    }
  }
  return before;
}

bool appended_tokens_are_seen(const Device& device, const Append& append,
                              const LoadedVariant& kernel, const DecodeCase& made) {
  DecodeTensors after(device, kernel.variant, made);
  DecodeLaunch plain(device, kernel.variant, made, after);
  launch(device, kernel, plain.params(), plain.grid(), false);
  device.synchronize();
  const DecodeOutput expected = after.output();

  const DecodeCase before = before_append(made);
  DecodeTensors live(device, kernel.variant, before);
  DecodeLaunch call(device, kernel.variant, before, live);
  const std::size_t bytes =
      made.problem.k.size() * (kernel.variant.dtype_kv == Dtype::kE4m3 ? 1 : 2) / 16 * 16;
  append(live.k(), after.k(), bytes);
  if (made.v_offset == 0) append(live.v(), after.v(), bytes);
  launch(device, kernel, call.params(), call.grid(), true);
  device.synchronize();
  return same_bits(expected, live.output());
}

int main_of_test(int argc, char** argv) {
  std::string manifest = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";
  int cases = 10;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--manifest") manifest = argv[i + 1];
    if (std::string(argv[i]) == "--cases") cases = std::atoi(argv[i + 1]);
  }
  const std::unique_ptr<Device> device = Device::open();
  if (!device) return 77;
  const std::vector<LoadedVariant> kernels = load_variants(*device, manifest, "");
  if (kernels.empty() || device->profile().sm < 90) return 77;
  const Append append(*device);
  int failures = 0;
  for (const LoadedVariant& kernel : kernels) {
    for (int i = 0; i < cases; ++i) {
      DecodeCase made = make_decode_case(kernel.variant, 900 + static_cast<std::uint64_t>(i));
      made.pdl = true;
      if (appended_tokens_are_seen(*device, append, kernel, made)) continue;
      ++failures;
      std::printf("FAILED %s: %s\n", kernel.variant.name.c_str(), made.text().c_str());
    }
  }
  std::printf("%zu kernels, %d cases each, %d failed\n", kernels.size(), cases, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) { return cubist::test::main_of_test(argc, argv); }
