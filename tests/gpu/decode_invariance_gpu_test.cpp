// batch_invariant by the project's own path: the bits of one sequence alone against the same
// sequence among 2 to 64 others of other lengths, at another place, selected for a GPU with other
// SMs.
//   decode_invariance_gpu_test [--manifest FILE] [--sequences N]
// Exit code 77: no GPU, or none the kernels are for.

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "gpu/device.h"
#include "gpu/random.h"
#include "launcher/nvfp4_output.h"
#include "model/derived_problem.h"
#include "reference/number_formats.h"
#include "runtime/selected.h"

namespace cubist::test {
namespace {

constexpr int kPoolTokens = 40960;
constexpr int kPageSize = 16;
constexpr int kBatches[] = {2, 3, 5, 8, 13, 24, 40, 64};

template <class T>
T must(Result<T> result) {
  if (!result) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::exit(EXIT_FAILURE);
  }
  return *std::move(result);
}
void must(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message().c_str());
  std::exit(EXIT_FAILURE);
}

struct Shape {
  Dtype dtype_q = Dtype::kBf16;
  Dtype dtype_kv = Dtype::kBf16;
  Dtype dtype_o = Dtype::kBf16;
  int head_dim = 128;
  int num_q_heads = 16;
  int num_kv_heads = 2;
  int q_len = 1;  ///< of every sequence; varlen_q: of the one that is looked at
  bool varlen_q = false;
  int window_left = -1;

  std::string text() const {
    return fmt::format("{} Q, {} KV, {} O, heads {}/{} of {}, {} token(s){}, window {}",
                       to_string(dtype_q), to_string(dtype_kv), to_string(dtype_o), num_q_heads,
                       num_kv_heads, head_dim, q_len, varlen_q ? " among others" : "", window_left);
  }
};

struct Sequence {
  int q_len = 1;
  int kv_len = 1;
  std::vector<std::int32_t> pages;
};

/// Random numbers of a type, 256 different ones, as bytes.
std::vector<std::uint8_t> random_tensor(Random& random, Dtype dtype, std::size_t elements) {
  std::uint16_t patterns[256];
  for (std::uint16_t& pattern : patterns) pattern = encode_number(dtype, random.normal());
  const std::size_t bytes = dtype_bits(dtype) / 8;
  std::vector<std::uint8_t> out(elements * bytes);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint16_t pattern = patterns[random.bits() & 0xff];
    out[i * bytes] = static_cast<std::uint8_t>(pattern & 0xff);
    if (bytes == 2) out[2 * i + 1] = static_cast<std::uint8_t>(pattern >> 8);
  }
  return out;
}

std::size_t elements(int rows, int heads, int head_dim) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(heads) *
         static_cast<std::size_t>(head_dim);
}

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// One shape, its pool of pages, and the query of the sequence that is looked at.
class Bench {
 public:
  Bench(const Device& device, runtime::Runtime& runtime, const Shape& shape, std::uint64_t seed)
      : device_(device),
        runtime_(runtime),
        shape_(shape),
        random_(seed),
        k_(device, pool()),
        v_(device, pool()),
        own_q_(random_tensor(random_, shape.dtype_q,
                             elements(shape.q_len, shape.num_q_heads, shape.head_dim))) {}

  Random& random() { return random_; }

  Sequence draw(int q_len, int kv_len) {
    Sequence made{q_len, kv_len, {}};
    for (int i = 0; i < (kv_len + kPageSize - 1) / kPageSize; ++i) {
      made.pages.push_back(random_.between(0, kPoolTokens / kPageSize - 1));
    }
    return made;
  }

  /// O, block scales and LSE of sequence `own` of the batch, in bytes.
  std::vector<std::uint8_t> run(const std::vector<Sequence>& batch, std::size_t own,
                                std::int32_t num_sms) {
    AttentionProblem problem = describe(batch);
    DeviceProfile profile = device_.profile();
    profile.num_sms = num_sms;
    const std::unique_ptr<runtime::Selected> selected = must(runtime_.select(problem, profile));
    problem = with_derived_fields(problem);
    std::vector<std::int32_t> cum = {0};
    std::vector<std::int32_t> lengths;
    std::vector<std::int32_t> table(
        batch.size() * static_cast<std::size_t>(problem.max_pages_per_seq), 0x40000000);
    std::vector<std::uint8_t> q;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      cum.push_back(cum.back() + batch[i].q_len);
      lengths.push_back(batch[i].kv_len);
      std::copy(batch[i].pages.begin(), batch[i].pages.end(),
                table.begin() + static_cast<std::ptrdiff_t>(i) * problem.max_pages_per_seq);
      const std::vector<std::uint8_t> rows =
          i == own ? own_q_
                   : random_tensor(random_, shape_.dtype_q,
                                   elements(batch[i].q_len, shape_.num_q_heads, shape_.head_dim));
      q.insert(q.end(), rows.begin(), rows.end());
    }
    const DeviceBuffer q_device(device_, q);
    const DeviceBuffer table_device(device_, table);
    const DeviceBuffer lengths_device(device_, lengths);
    const DeviceBuffer cum_device(device_, cum);
    const auto rows = static_cast<std::size_t>(cum.back());
    const std::size_t o_row = row_elements() * dtype_bits(shape_.dtype_o) / 8;
    const DeviceBuffer o(device_, rows * o_row);
    const DeviceBuffer lse(device_, rows * static_cast<std::size_t>(shape_.num_q_heads) * 4);
    const runtime::WorkspaceNeed need = must(selected->workspace());
    DeviceBuffer workspace(device_, need.size);
    workspace.fill(0xff);
    launcher::CallArgs args;
    args.q = address(q_device.pointer());
    args.k = address(k_.pointer());
    args.v = address(v_.pointer());
    args.o = address(o.pointer());
    args.lse = address(lse.pointer());
    args.block_table = address(table_device.pointer());
    args.seq_lens_kv = address(lengths_device.pointer());
    if (shape_.varlen_q) args.cum_seq_lens_q = address(cum_device.pointer());
    args.workspace = need.size == 0 ? 0 : address(workspace.pointer());
    args.workspace_size = need.size;
    const bool nvfp4 = shape_.dtype_o == Dtype::kE2m1;
    const auto layout =
        nvfp4 ? must(launcher::nvfp4_scale_layout(problem)) : launcher::Nvfp4ScaleLayout{};
    const DeviceBuffer o_sf(device_, static_cast<std::size_t>(layout.size_bytes()));
    if (nvfp4) args.o_sf = address(o_sf.pointer());
    must(selected->prepare());
    must(selected->clear_workspace(args.workspace, args.workspace_size, nullptr));
    must(selected->launch(args, nullptr));
    device_.synchronize();
    num_ctas_kv_ = selected->selection().best().num_ctas_kv;

    std::vector<std::uint8_t> bits;
    const auto append = [&](const std::vector<std::uint8_t>& bytes, std::size_t row) {
      bits.insert(
          bits.end(),
          bytes.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(cum[own]) * row),
          bytes.begin() +
              static_cast<std::ptrdiff_t>(static_cast<std::size_t>(cum[own + 1]) * row));
    };
    append(o.download<std::uint8_t>(), o_row);
    append(lse.download<std::uint8_t>(), static_cast<std::size_t>(shape_.num_q_heads) * 4);
    if (!nvfp4) return bits;
    const std::vector<std::uint8_t> scales = o_sf.download<std::uint8_t>();
    for (std::int64_t row = cum[own]; row < cum[own + 1]; ++row) {
      for (std::int64_t column = 0; column < layout.columns; ++column) {
        bits.push_back(scales[static_cast<std::size_t>(layout.offset(row, column))]);
      }
    }
    return bits;
  }

  std::int32_t num_ctas_kv() const { return num_ctas_kv_; }

 private:
  std::size_t row_elements() const { return elements(1, shape_.num_q_heads, shape_.head_dim); }
  std::vector<std::uint8_t> pool() {
    return random_tensor(random_, shape_.dtype_kv,
                         elements(kPoolTokens, shape_.num_kv_heads, shape_.head_dim));
  }

  AttentionProblem describe(const std::vector<Sequence>& batch) const {
    AttentionProblem problem;
    problem.dtype_q = shape_.dtype_q;
    problem.dtype_k = problem.dtype_v = shape_.dtype_kv;
    problem.dtype_o = shape_.dtype_o;
    problem.o_sf_scale = shape_.dtype_o == Dtype::kE2m1 ? 400.0F : -1.0F;
    problem.head_dim_qk = shape_.head_dim;
    problem.num_q_heads = shape_.num_q_heads;
    problem.num_kv_heads = shape_.num_kv_heads;
    problem.page_size = kPageSize;
    problem.num_pages = kPoolTokens / kPageSize;
    problem.batch = static_cast<std::int32_t>(batch.size());
    problem.max_q_len = problem.max_kv_len = 1;
    problem.sum_seq_q = 0;
    for (const Sequence& sequence : batch) {
      problem.max_q_len = std::max(problem.max_q_len, sequence.q_len);
      problem.max_kv_len = std::max(problem.max_kv_len, sequence.kv_len);
      problem.sum_seq_q += sequence.q_len;
    }
    problem.varlen_q = shape_.varlen_q;
    problem.window_left = shape_.window_left;
    problem.lse = true;
    problem.batch_invariant = true;
    return problem;
  }

  const Device& device_;
  runtime::Runtime& runtime_;
  const Shape shape_;
  Random random_;
  const DeviceBuffer k_;
  const DeviceBuffer v_;
  const std::vector<std::uint8_t> own_q_;
  std::int32_t num_ctas_kv_ = 0;
};

struct Count {
  int sequences = 0;
  int batches = 0;
  int failed = 0;
  int split = 0;  ///< sequences that were split even alone
};

/// One sequence alone, then in each batch.
void look_at(Bench& bench, const Shape& shape, int kv_len, Count& count) {
  Random& random = bench.random();
  const Sequence own = bench.draw(shape.q_len, kv_len);
  const std::vector<std::uint8_t> alone = bench.run({own}, 0, 132);
  ++count.sequences;
  if (bench.num_ctas_kv() > 1) ++count.split;
  for (const int batch : kBatches) {
    std::vector<Sequence> sequences;
    for (int i = 1; i < batch; ++i) {
      const int longest = random.pick({40, 600, 5000, kPoolTokens});
      sequences.push_back(bench.draw(shape.varlen_q ? random.between(0, 8) : shape.q_len,
                                     random.between(0, longest)));
    }
    const auto at = static_cast<std::size_t>(random.between(0, batch - 1));
    sequences.insert(sequences.begin() + static_cast<std::ptrdiff_t>(at), own);
    ++count.batches;
    if (bench.run(sequences, at, random.pick({1, 78, 132, 264})) == alone) continue;
    ++count.failed;
    std::printf("FAILED %s: %d keys alone and in a batch of %d\n", shape.text().c_str(), kv_len,
                batch);
  }
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  const Dtype types[4][2] = {{Dtype::kBf16, Dtype::kBf16},
                             {Dtype::kFp16, Dtype::kFp16},
                             {Dtype::kBf16, Dtype::kE4m3},
                             {Dtype::kE4m3, Dtype::kE4m3}};
  for (const auto& [q, kv] : types) {
    const Dtype own = q == Dtype::kE4m3 ? Dtype::kBf16 : q;
    all.push_back({q, kv, own, 128, 16, 2, 1, false, -1});
    all.push_back({q, kv, own, 64, 64, 8, 4, false, -1});
    all.push_back({q, kv, own, 256, 8, 1, 1, false, 1000});
    all.push_back({q, kv, own, 128, 10, 2, 3, true, -1});
    all.push_back({q, kv, own, 64, 16, 2, 1, true, 127});
  }
  all.push_back({Dtype::kBf16, Dtype::kBf16, Dtype::kE2m1, 128, 24, 2, 1, false, -1});
  all.push_back({Dtype::kBf16, Dtype::kE4m3, Dtype::kE4m3, 64, 16, 2, 2, true, -1});
  return all;
}

int main_of_test(int argc, char** argv) {
  std::string manifest = CUBIST_SOURCE_DIR "/manifests/cubist-decode.json";
  int sequences = 6;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::string(argv[i]) == "--manifest") manifest = argv[i + 1];
    if (std::string(argv[i]) == "--sequences") sequences = std::atoi(argv[i + 1]);
  }
  const std::unique_ptr<Device> device = Device::open();
  if (!device || !runs_on({90, SmArch::Kind::kSpecific}, device->profile().sm)) return 77;
  const std::filesystem::path store =
      std::filesystem::temp_directory_path() / fmt::format("cubist-invariance-{}", getpid());
  runtime::RuntimeOptions options;
  options.manifests = {manifest};
  options.store_dir = store.string();
  options.offline = true;
  Count count;
  {
    const std::shared_ptr<runtime::Runtime> runtime = must(runtime::Runtime::open(options));
    std::uint64_t seed = 1;
    for (const Shape& shape : shapes()) {
      Bench bench(*device, *runtime, shape, seed++);
      constexpr int kLengths[] = {1, 64, 1000, 1025, 4097, 20000, 70, 2048, 9000, 33333};
      for (int i = 0; i < std::min<int>(sequences, std::size(kLengths)); ++i) {
        look_at(bench, shape, std::max(kLengths[i], shape.q_len), count);
      }
    }
  }
  std::filesystem::remove_all(store);
  std::printf("%d sequences (%d split over CTAs), alone against %d batches: %d failed\n",
              count.sequences, count.split, count.batches, count.failed);
  return count.failed == 0 && count.split > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) { return cubist::test::main_of_test(argc, argv); }
