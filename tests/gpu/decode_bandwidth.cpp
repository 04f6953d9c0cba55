// How fast the decode kernels read KV: a starting figure, not a comparison.
//   decode_bandwidth [MANIFEST]
// Two KV pools take turns, so that a launch finds little of its KV in L2; random numbers; pages in
// random order. Time: seven runs of 20 launches with PDL, the median run over 20.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "gpu/decode_modules.h"
#include "gpu/random.h"
#include "reference/number_formats.h"

namespace cubist::test {
namespace {

using namespace cubist::cuda;  // NOLINT(google-build-using-namespace)

constexpr int kMaxBatch = 32;
constexpr int kKvLen = 8192;
constexpr int kPageSize = 64;
constexpr int kKvHeads = 8;
constexpr int kPages = kMaxBatch * kKvLen / kPageSize;
constexpr int kLaunches = 20;
constexpr int kRuns = 7;

struct Shape {
  int heads_per_kv;
  int head_dim;
};

/// Random bits of the type's numbers around 1, repeated through `bytes`.
void fill_random(const Device& device, const DeviceBuffer& buffer, std::size_t bytes, Dtype dtype) {
  Random random(7);
  const std::size_t element_bytes = dtype == Dtype::kE4m3 ? 1 : 2;
  std::vector<std::uint8_t> block(std::min<std::size_t>(bytes, 16U << 20));
  for (std::size_t i = 0; i < block.size(); i += element_bytes) {
    const std::uint16_t bits = encode_number(dtype, random.normal());
    block[i] = static_cast<std::uint8_t>(bits & 0xff);
    if (element_bytes == 2) block[i + 1] = static_cast<std::uint8_t>(bits >> 8);
  }
  for (std::size_t at = 0; at < bytes; at += block.size()) {
    const std::size_t part = std::min(block.size(), bytes - at);
    device.check(device.table().cuMemcpyHtoD(reinterpret_cast<CUdeviceptr>(buffer.as<char>(at)),
                                             block.data(), part),
                 "cuMemcpyHtoD");
  }
}

std::vector<std::int32_t> shuffled_pages() {
  std::vector<std::int32_t> pages(kPages);
  std::iota(pages.begin(), pages.end(), 0);
  Random random(3);
  for (std::size_t i = pages.size(); i > 1; --i) {
    std::swap(pages[i - 1],
              pages[static_cast<std::size_t>(random.between(0, static_cast<int>(i) - 1))]);
  }
  return pages;
}

/// One shape and dtype: pools, inputs and the block of parameters for any number of new tokens.
class Problem {
 public:
  Problem(const Device& device, Shape shape, Dtype dtype_kv)
      : device_(device),
        shape_(shape),
        element_bytes_(dtype_kv == Dtype::kE4m3 ? 1 : 2),
        pool_bytes_(static_cast<std::size_t>(kPages) * kKvHeads * kPageSize *
                    static_cast<std::size_t>(shape.head_dim) * element_bytes_),
        k_{{device, pool_bytes_}, {device, pool_bytes_}},
        v_{{device, pool_bytes_}, {device, pool_bytes_}},
        q_(device, q_bytes()),
        o_(device, q_bytes()),
        pages_(device, shuffled_pages()),
        lengths_(device, std::vector<std::int32_t>(kMaxBatch, kKvLen)),
        partial_o_(device, 256U << 20),
        partial_stats_(device, 4U << 20),
        counters_(device, 1U << 20) {
    for (int slot = 0; slot < 2; ++slot) {
      fill_random(device, k_[slot], pool_bytes_, dtype_kv);
      fill_random(device, v_[slot], pool_bytes_, dtype_kv);
    }
    fill_random(device, q_, q_bytes(), Dtype::kBf16);
    counters_.fill(0);
  }

  /// Bytes of K and V that a launch reads.
  std::size_t bytes(int batch) const {
    return 2 * pool_bytes_ / kMaxBatch * static_cast<std::size_t>(batch);
  }

  /// Microseconds a launch.
  double time(const LoadedVariant& kernel, int batch, int max_q_len, int num_ctas_kv) {
    const driver::DriverTable& table = device_.table();
    CUevent start = nullptr;
    CUevent stop = nullptr;
    device_.check(table.cuEventCreate(&start, 0), "cuEventCreate");
    device_.check(table.cuEventCreate(&stop, 0), "cuEventCreate");
    std::vector<float> runs;
    for (int run = -1; run < kRuns; ++run) {
      device_.check(table.cuEventRecord(start, nullptr), "cuEventRecord");
      for (int i = 0; i < kLaunches; ++i) {
        const CubistDecodeParams params =
            parameters(kernel.variant, batch, max_q_len, num_ctas_kv, i);
        const std::array<unsigned, 3> grid = {
            static_cast<unsigned>(params.num_ctas_q * params.num_ctas_kv), kKvHeads,
            static_cast<unsigned>(batch)};
        launch(device_, kernel, params, grid, true);
      }
      device_.check(table.cuEventRecord(stop, nullptr), "cuEventRecord");
      device_.check(table.cuEventSynchronize(stop), "cuEventSynchronize");
      float milliseconds = 0.0F;
      device_.check(table.cuEventElapsedTime(&milliseconds, start, stop), "cuEventElapsedTime");
      if (run >= 0) runs.push_back(milliseconds);
    }
    std::sort(runs.begin(), runs.end());
    return static_cast<double>(runs[kRuns / 2]) * 1000.0 / kLaunches;
  }

 private:
  std::size_t q_bytes() const {
    return static_cast<std::size_t>(kMaxBatch * 16 * kKvHeads * shape_.heads_per_kv *
                                    shape_.head_dim) *
           2;
  }

  CubistDecodeParams parameters(const DecodeVariant& variant, int batch, int max_q_len,
                                int num_ctas_kv, int turn) const {
    CubistDecodeParams params = {};
    // Whole pools in turn, and within a pool the sequences behind the last turn's.
    const int slot = turn % 2;
    const int first_sequence = turn / 2 * batch % kMaxBatch;
    params.q = q_.pointer();
    params.k = k_[slot].pointer();
    params.v = v_[slot].pointer();
    params.o = o_.pointer();
    params.block_table =
        pages_.as<std::int32_t>(static_cast<std::size_t>(first_sequence * (kKvLen / kPageSize)));
    params.seq_lens_kv = lengths_.as<std::int32_t>();
    params.partial_o = partial_o_.as<float>();
    params.partial_stats = partial_stats_.as<float>();
    params.counters = counters_.as<std::int32_t>();
    params.q_stride_heads = params.o_stride_heads = shape_.head_dim;
    params.q_stride_tokens = params.o_stride_tokens =
        std::int64_t{kKvHeads} * shape_.heads_per_kv * shape_.head_dim;
    params.k_stride_tokens = params.v_stride_tokens = shape_.head_dim;
    params.k_stride_heads = params.v_stride_heads = std::int64_t{kPageSize} * shape_.head_dim;
    params.k_stride_pages = params.v_stride_pages = params.k_stride_heads * kKvHeads;
    params.scale_softmax_log2 = 0.12F;
    params.output_scale = 1.0F;
    params.batch = batch;
    params.max_q_len = max_q_len;
    params.num_q_heads = kKvHeads * shape_.heads_per_kv;
    params.num_kv_heads = kKvHeads;
    params.num_heads_per_kv = shape_.heads_per_kv;
    params.page_size_log2 = 6;
    params.max_pages_per_seq = kKvLen / kPageSize;
    params.window_left = -1;
    params.num_heads_per_cta = std::min(shape_.heads_per_kv, variant.tile_q);
    params.num_tokens_per_cta_q = std::max(1, variant.tile_q / shape_.heads_per_kv);
    params.num_ctas_q = (max_q_len + params.num_tokens_per_cta_q - 1) / params.num_tokens_per_cta_q;
    params.num_ctas_kv = num_ctas_kv;
    return params;
  }

  const Device& device_;
  const Shape shape_;
  const std::size_t element_bytes_;
  const std::size_t pool_bytes_;
  DeviceBuffer k_[2];
  DeviceBuffer v_[2];
  DeviceBuffer q_, o_, pages_, lengths_, partial_o_, partial_stats_, counters_;
};

/// The smallest tile that holds all rows, as the selector takes it; null where there is none.
const LoadedVariant* find_kernel(const std::vector<LoadedVariant>& kernels, Shape shape,
                                 Dtype dtype_kv, int rows) {
  const LoadedVariant* best = nullptr;
  for (const LoadedVariant& kernel : kernels) {
    const DecodeVariant& variant = kernel.variant;
    if (variant.dtype_q != Dtype::kBf16 || variant.dtype_kv != dtype_kv ||
        variant.head_dim != shape.head_dim || variant.tile_q < rows) {
      continue;
    }
    if (best == nullptr || variant.tile_q < best->variant.tile_q) best = &kernel;
  }
  return best;
}

void time_shape(const Device& device, const std::vector<LoadedVariant>& kernels, Shape shape,
                Dtype dtype_kv) {
  Problem problem(device, shape, dtype_kv);
  for (const int batch : {8, 16, 32}) {
    for (const int max_q_len : {1, 2, 4, 8}) {
      const LoadedVariant* kernel =
          find_kernel(kernels, shape, dtype_kv, max_q_len * shape.heads_per_kv);
      if (kernel == nullptr) continue;
      std::printf("%d/%d/%d %s KV, batch %d, s_qo %d, tile_q %d:", kKvHeads * shape.heads_per_kv,
                  kKvHeads, shape.head_dim, dtype_kv == Dtype::kE4m3 ? "e4m3" : "bf16", batch,
                  max_q_len, kernel->variant.tile_q);
      for (const int num_ctas_kv : {1, 2, 4}) {
        const double us = problem.time(*kernel, batch, max_q_len, num_ctas_kv);
        std::printf("  num_ctas_kv %d %.1f us %.0f GB/s", num_ctas_kv, us,
                    static_cast<double>(problem.bytes(batch)) / us * 1e-3);
      }
      std::printf("\n");
    }
  }
}

int main_of_program(const std::string& manifest) {
  const std::unique_ptr<Device> device = Device::open();
  if (!device) return 77;
  const std::vector<LoadedVariant> kernels = load_variants(*device, manifest, "q_bf16");
  if (kernels.empty()) return 77;
  std::printf("%s, KV %d, page %d HND\n", device->profile().name.c_str(), kKvLen, kPageSize);
  for (const Shape shape : {Shape{12, 128}, Shape{8, 64}}) {
    for (const Dtype dtype_kv : {Dtype::kBf16, Dtype::kE4m3}) {
      time_shape(*device, kernels, shape, dtype_kv);
    }
  }
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace cubist::test

int main(int argc, char** argv) {
  return cubist::test::main_of_program(
      argc > 1 ? argv[1] : CUBIST_SOURCE_DIR "/manifests/cubist-decode.json");
}
