// What launching and loading cost beside the bare driver calls, on one GPU; every figure is a ratio
// or difference to bare calls measured in the same run, in turns.
//
//   bench_launch [ROUNDS]     prints JSON; ends with 77 where there is no GPU the kernels run on

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

#include "bench.h"
#include "driver/device_query.h"
#include "model/cuda_version.h"

namespace cubist::bench {

std::shared_ptr<runtime::Runtime> Bench::open_runtime() const {
  runtime::RuntimeOptions options;
  options.manifests = {CUBIST_SOURCE_DIR "/manifests/cubist-decode.json",
                       CUBIST_SOURCE_DIR "/manifests/cubist-aux.json"};
  options.store_dir = store;
  options.offline = true;
  return require(runtime::Runtime::open(options));
}

void require(const Status& status) {
  if (status) return;
  std::fprintf(stderr, "%s\n", status.error().message().c_str());
  std::exit(1);
}

void require(cuda::CUresult result, const char* call) {
  if (result == cuda::CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: %d\n", call, static_cast<int>(result));
  std::exit(1);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double microseconds(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void run_in_turns(std::vector<Way>& ways, int rounds) {
  std::mt19937 random(7);
  std::vector<std::size_t> order(ways.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (int round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (const std::size_t i : order) ways[i].seen.push_back(ways[i].measure());
  }
}

namespace {

int run(int rounds) {
  auto driver = driver::Driver::open();
  if (!driver) {
    std::fprintf(stderr, "skipped: %s\n", driver.error().message().c_str());
    return 77;
  }
  const auto device = driver::query_device(**driver, 0);
  if (!device || !runs_on({90, SmArch::Kind::kSpecific}, device->sm)) {
    std::fprintf(stderr, "skipped: no GPU that the shipped kernels run on\n");
    return 77;
  }
  Bench bench;
  bench.driver = *driver;
  bench.rounds = rounds;
  bench.store = std::filesystem::temp_directory_path() / fmt::format("bench_launch.{}", ::getpid());
  const driver::DriverTable& table = bench.driver->table();
  require(table.cuDevicePrimaryCtxRetain(&bench.context, 0), "cuDevicePrimaryCtxRetain");
  require(table.cuCtxPushCurrent(bench.context), "cuCtxPushCurrent");
  require(bench.open_runtime()->fetch({}));
  const Json result = {{"gpu", device->name},
                       {"driver", cuda_version_text(table.driver_version)},
                       {"rounds", rounds},
                       {"warm", bench_warm(bench)},
                       {"cold", bench_cold(bench)},
                       {"prepare", bench_prepare(bench)},
                       {"prepare_from_store", bench_prepare_store(bench)},
                       {"threads", bench_threads(bench)}};
  std::puts(result.dump(1).c_str());
  std::filesystem::remove_all(bench.store);
  cuda::CUcontext popped = nullptr;
  table.cuCtxPopCurrent(&popped);
  table.cuDevicePrimaryCtxRelease(0);
  return 0;
}

}  // namespace
}  // namespace cubist::bench

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  return cubist::bench::run(std::max(rounds, 1));
}
