// The fastest way known here to read device memory, as the bound of kernels that must read their KV
// cache once: one CTA an SM, twelve bulk copies of 16 KiB in flight, nothing done with the bytes.
//   read_bound MIB...    prints "bytes us", the median of 9 replays of a graph of several calls,
//                        each call on another part of a pool far larger than L2
// nvcc -O3 -std=c++17 -gencode arch=compute_90a,code=sm_90a -o read_bound read_bound.cu

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

constexpr int kStages = 12;
constexpr int kChunk = 16384;
constexpr std::size_t kPoolBytes = std::size_t{12} << 30;

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "read_bound: %s: %s\n", what, cudaGetErrorString(error));
  std::exit(EXIT_FAILURE);
}

__global__ void __launch_bounds__(32, 1) read(const char* from, std::size_t bytes) {
  extern __shared__ __align__(128) unsigned char stages[];
  __shared__ __align__(8) std::uint64_t barriers[kStages];
  if (threadIdx.x != 0) return;
  const auto shared = [](void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
  };
  for (int i = 0; i < kStages; ++i) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared(barriers + i)));
  }
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  const std::size_t chunks = bytes / kChunk;
  const std::size_t begin = chunks * blockIdx.x / gridDim.x;
  const std::size_t end = chunks * (blockIdx.x + 1) / gridDim.x;
  const auto copy = [&](std::size_t chunk) {
    const int stage = static_cast<int>((chunk - begin) % kStages);
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared(barriers + stage)),
        "r"(kChunk)
        : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
            "r"(shared(stages + stage * kChunk)),
        "l"(from + chunk * kChunk), "r"(kChunk), "r"(shared(barriers + stage))
        : "memory");
  };
  for (std::size_t chunk = begin; chunk < end && chunk < begin + kStages; ++chunk) copy(chunk);
  for (std::size_t chunk = begin; chunk < end; ++chunk) {
    const std::size_t index = chunk - begin;
    asm volatile(
        "{\n.reg .pred done;\nWAIT_%=:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra WAIT_%=;\n}" ::"r"(shared(barriers + index % kStages)),
        "r"(static_cast<unsigned>(index / kStages & 1))
        : "memory");
    if (chunk + kStages < end) copy(chunk + kStages);
  }
}

double time_of(const char* pool, std::size_t bytes, int sms, cudaStream_t stream) {
  const int slots = static_cast<int>(std::min<std::size_t>(kPoolBytes / bytes, 64));
  const int calls = std::max(6, std::min(slots, 20));
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
  for (int i = 0; i < calls; ++i) {
    read<<<sms, 32, kStages * kChunk, stream>>>(pool + static_cast<std::size_t>(i % slots) * bytes,
                                                bytes);
  }
  check(cudaStreamEndCapture(stream, &graph), "end of capture");
  check(cudaGraphInstantiate(&exec, graph, 0), "graph");
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  std::vector<float> times;
  for (int i = -1; i < 9; ++i) {
    check(cudaEventRecord(start, stream), "record");
    check(cudaGraphLaunch(exec, stream), "launch");
    check(cudaEventRecord(stop, stream), "record");
    check(cudaEventSynchronize(stop), "replay");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, stop), "time");
    if (i >= 0) times.push_back(milliseconds);
  }
  std::sort(times.begin(), times.end());
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  return times[times.size() / 2] * 1000.0 / calls;
}

}  // namespace

int main(int argc, char** argv) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "device");
  check(cudaFuncSetAttribute(read, cudaFuncAttributeMaxDynamicSharedMemorySize, kStages * kChunk),
        "shared memory");
  char* pool = nullptr;
  check(cudaMalloc(&pool, kPoolBytes), "pool");
  check(cudaMemset(pool, 0x5a, kPoolBytes), "pool");
  cudaStream_t stream;
  check(cudaStreamCreate(&stream), "stream");
  for (int i = 1; i < argc; ++i) {
    const std::size_t bytes = static_cast<std::size_t>(std::atoll(argv[i])) << 20;
    std::printf("%zu %.3f\n", bytes, time_of(pool, bytes, properties.multiProcessorCount, stream));
  }
  return 0;
}
