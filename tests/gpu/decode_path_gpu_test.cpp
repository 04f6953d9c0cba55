// Random decode problems by the project's own path: manifest, store, selector, launcher. The
// kernels start in kernels/prebuilt and come through an empty store; O is held against a float64
// reference.
//   decode_path_gpu_test [--manifest FILE] [--cases N] [--seed S]
// Exit code 77: no GPU, or none the kernels are for.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <mutex>
#include <numbers>
#include <string>

#include "gpu/decode_tally.h"
#include "gpu/decode_tensors.h"
#include "gpu/device.h"
#include "runtime/selected.h"

namespace cubist::test {
namespace {

struct Options {
  std::string manifest = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";
  int cases = 297;
  std::uint64_t seed = 5;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--manifest") options.manifest = argv[i + 1];
    if (flag == "--cases") options.cases = std::atoi(argv[i + 1]);
    if (flag == "--seed") options.seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return options;
}

[[noreturn]] void fail_test(const Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  std::exit(EXIT_FAILURE);
}

template <class T>
T must(Result<T> result) {
  if (!result) fail_test(result.error());
  return *std::move(result);
}
void must(const Status& status) {
  if (!status) fail_test(status.error());
}

/// Types and head sizes in turn; the tile is the selector's to choose, so the one here only shapes
/// the drawn geometry, which this test does not use.
DecodeVariant variant_of_case(int index) {
  constexpr Dtype kTypes[4][2] = {{Dtype::kBf16, Dtype::kBf16},
                                  {Dtype::kFp16, Dtype::kFp16},
                                  {Dtype::kBf16, Dtype::kE4m3},
                                  {Dtype::kE4m3, Dtype::kE4m3}};
  constexpr int kHeadDims[4][2] = {{64, 64}, {128, 128}, {256, 256}, {576, 512}};
  DecodeVariant variant;
  variant.head_dim = kHeadDims[index % 4][0];
  variant.head_dim_vo = kHeadDims[index % 4][1];
  // MLA has neither e4m3 queries nor a choice of outputs.
  const int types = index / 4 % (variant.is_mla() ? 3 : 4);
  variant.dtype_q = kTypes[types][0];
  variant.dtype_kv = kTypes[types][1];
  variant.persistent = variant.is_mla();
  const Dtype own = variant.dtype_q == Dtype::kE4m3 ? Dtype::kBf16 : variant.dtype_q;
  const Dtype other = own == Dtype::kBf16 ? Dtype::kFp16 : Dtype::kBf16;
  const Dtype outputs[6] = {own, Dtype::kE4m3, Dtype::kE2m1, own, Dtype::kE2m1, other};
  variant.dtype_o = variant.is_mla() ? own : outputs[index / 16 % 6];
  variant.tile_q = 64;
  return variant;
}

/// Batch-invariant launches among the others; MLA has none.
bool is_batch_invariant(const DecodeVariant& variant, int index) {
  return !variant.is_mla() && index % 7 < 3;
}

AttentionProblem problem_of(const DecodeVariant& variant, const DecodeCase& made, int index) {
  const DecodeProblem& drawn = made.problem;
  AttentionProblem problem;
  problem.phase = Phase::kDecode;
  problem.dtype_q = variant.dtype_q;
  problem.dtype_o = variant.dtype_o;
  problem.batch_invariant = is_batch_invariant(variant, index);
  problem.o_sf_scale = made.o_sf_scale;
  problem.dtype_k = problem.dtype_v = variant.dtype_kv;
  problem.head_dim_qk = drawn.head_dim;
  problem.head_dim_vo = drawn.head_dim_vo;
  problem.is_mla = made.one_copy;
  problem.num_q_heads = drawn.num_q_heads;
  problem.num_kv_heads = drawn.num_kv_heads;
  problem.batch = drawn.batch();
  problem.max_q_len = made.max_q_len;
  problem.max_kv_len = std::max(1, drawn.max_pages_per_seq * drawn.page_size);
  problem.sum_seq_q = std::max(1, drawn.sum_seq_q());
  problem.page_size = drawn.page_size;
  problem.max_pages_per_seq = std::max(1, drawn.max_pages_per_seq);
  problem.kv_layout = made.nhd ? KvLayout::kNhd : KvLayout::kHnd;
  problem.q_stride_tokens = drawn.q_stride_tokens;
  problem.q_stride_heads = drawn.q_stride_heads;
  problem.kv_stride_batch = drawn.kv_stride_pages;
  problem.kv_stride_heads = drawn.kv_stride_heads;
  problem.kv_stride_tokens = drawn.kv_stride_tokens;
  // The kernel takes any window, a problem's ends one before the largest int.
  problem.window_left = std::min(drawn.window_left, std::numeric_limits<int>::max() - 1);
  problem.varlen_q = made.gives_cum_seq_lens_q;
  problem.sinks = !drawn.sinks.empty();
  problem.lse = made.wants_lse;
  problem.bmm1_scale.on_device = problem.bmm2_scale.on_device = made.scales_on_device;
  problem.enable_pdl = made.pdl;
  return problem;
}

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

launcher::CallArgs args_of(const DecodeCase& made, const DecodeTensors& tensors) {
  launcher::CallArgs args;
  args.q = address(tensors.q());
  args.k = address(tensors.k());
  args.v = address(tensors.v());
  args.o = address(tensors.o());
  args.o_sf = address(tensors.o_sf());
  // The global scale comes with the problem, the first row with the call.
  if (tensors.o_sf() != nullptr) args.o_sf_start_index = made.o_sf_start_index;
  args.block_table = address(tensors.block_table());
  args.seq_lens_kv = address(tensors.seq_lens_kv());
  args.cum_seq_lens_q = address(tensors.cum_seq_lens_q());
  args.sinks = address(tensors.sinks());
  args.lse = address(tensors.lse());
  args.o_stride_tokens = made.o_stride_tokens;
  args.o_stride_heads = made.o_stride_heads;
  args.bmm1_scale_log2 = address(tensors.bmm1_scale_log2());
  args.bmm2_scale = address(tensors.bmm2_scale());
  if (!made.scales_on_device) {
    args.scales.sm_scale = static_cast<float>(made.problem.scale_log2 / std::numbers::log2e);
    args.scales.o_scale = static_cast<float>(made.problem.output_scale);
  }
  return args;
}

class PathTest {
 public:
  PathTest(const Device& device, std::shared_ptr<runtime::Runtime> runtime, const Options& options)
      : device_(device), runtime_(std::move(runtime)), options_(options) {}

  void work() {
    device_.make_current();
    for (int i = next_++; i < options_.cases; i = next_++) run_case(i);
  }
  int report() const {
    tally_.print();
    return tally_.failures() == 0 && tally_.cases() == options_.cases ? EXIT_SUCCESS : EXIT_FAILURE;
  }

 private:
  void run_case(int index) {
    const DecodeVariant variant = variant_of_case(index);
    const std::uint64_t seed = options_.seed * 1000003 + static_cast<std::uint64_t>(index);
    const DecodeCase made = make_decode_case(variant, seed);
    const DecodeAnswer answer = decode_reference(made.problem);
    const std::unique_ptr<runtime::Selected> selected =
        must(runtime_->select(problem_of(variant, made, index), device_.profile()));
    std::unique_lock lock(gpu_);
    const DecodeErrors errors = launch_and_check(*selected, variant, made, answer);
    lock.unlock();
    tally_.add(variant, selected->selection().best().record->name,
               std::to_string(index) + ", " + made.text(), errors, answer.lse.size());
  }

  DecodeErrors launch_and_check(runtime::Selected& selected, const DecodeVariant& variant,
                                const DecodeCase& made, const DecodeAnswer& answer) {
    DecodeTensors tensors(device_, variant, made);
    const runtime::WorkspaceNeed need = must(selected.workspace());
    DeviceBuffer workspace(device_, need.size);
    workspace.fill(0xff);
    launcher::CallArgs args = args_of(made, tensors);
    args.workspace = need.size == 0 ? 0 : address(workspace.pointer());
    args.workspace_size = need.size;
    must(selected.prepare());
    must(selected.clear_workspace(args.workspace, args.workspace_size, nullptr));
    for (int i = 0; i < 2; ++i) must(selected.launch(args, nullptr));
    device_.synchronize();
    return check_output(variant, made, answer, tensors.output());
  }

  const Device& device_;
  const std::shared_ptr<runtime::Runtime> runtime_;
  const Options options_;
  std::atomic<int> next_{0};
  std::mutex gpu_;
  DecodeTally tally_;
};

/// An empty folder that goes away with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "cubist-path-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      std::perror("mkdtemp");
      std::exit(EXIT_FAILURE);
    }
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

int main_of_test(int argc, char** argv) {
  const Options options = parse(argc, argv);
  const std::unique_ptr<Device> device = Device::open();
  if (!device) return 77;
  if (!runs_on({90, SmArch::Kind::kSpecific}, device->profile().sm)) {
    std::fprintf(stderr, "the shipped kernels are for sm_90a, this GPU is sm_%u\n",
                 device->profile().sm);
    return 77;
  }
  const ScratchFolder store;
  runtime::RuntimeOptions runtime_options;
  runtime_options.manifests = {options.manifest};
  runtime_options.store_dir = store.path();
  runtime_options.offline = true;
  PathTest test(*device, must(runtime::Runtime::open(runtime_options)), options);
  on_all_cores([&test] { test.work(); });
  return test.report();
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) { return cubist::test::main_of_test(argc, argv); }
