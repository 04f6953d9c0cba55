// Host time of warm launches of the trtllm-gen family, without a GPU: libcuda is one that does
// nothing, so that what is measured is what the library adds to cuLaunchKernelEx (and to the
// encoding of tensor maps, which the real driver does). Ways are measured in turn; medians.
//
//   bench_launch_host [ROUNDS]     prints JSON

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <vector>

#include <nlohmann/json.hpp>

#include "driver/cuda_abi.h"
#include "support/warm_calls.h"

namespace {

using cubist::test::WarmCalls;
using Json = nlohmann::ordered_json;
using BareLaunch = cubist::cuda::CUresult (*)(const cubist::cuda::CUlaunchConfig*,
                                              cubist::cuda::CUfunction, void**, void**);

constexpr int kInARow = 1000;

struct Way {
  const char* name;
  std::function<void()> launch;
  std::vector<double> seen;
};

/// Nanoseconds a call.
double measure(const std::function<void()>& launch) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kInARow; ++i) launch();
  const std::chrono::duration<double, std::nano> all = std::chrono::steady_clock::now() - start;
  return all.count() / kInARow;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

BareLaunch bare_launch() {
  void* const library = dlopen(cubist::test::quiet_libcuda_path(), RTLD_NOW);
  const auto get = reinterpret_cast<cubist::cuda::GetProcAddress>(
      library == nullptr ? nullptr : dlsym(library, "cuGetProcAddress_v2"));
  void* found = nullptr;
  cubist::cuda::CUdriverProcAddressQueryResult result;
  if (get == nullptr || get("cuLaunchKernelEx", &found, 12000, 0, &result) != 0) {
    throw std::runtime_error("no quiet libcuda");
  }
  return reinterpret_cast<BareLaunch>(found);
}

Json bench_call(const WarmCalls& warm, const WarmCalls::Call& call, BareLaunch bare, int rounds) {
  const auto fine = [](cubist_status status) {
    if (status != CUBIST_STATUS_OK) std::abort();
  };
  std::vector<Way> ways = {
      {"bare cuLaunchKernelEx",
       [&] {
         for (int i = 0; i < call.num_launches; ++i) bare(nullptr, nullptr, nullptr, nullptr);
       },
       {}},
      {"cubist_selection_launch", [&] { fine(warm.launch_selection(call)); }, {}},
      {"cubist_runtime_launch", [&] { fine(warm.launch_runtime(call)); }, {}}};
  for (int round = 0; round < rounds; ++round) {
    for (Way& way : ways) way.seen.push_back(measure(way.launch));
  }
  Json result = {{"call", call.name}, {"kernel", call.kernel}, {"kernels", call.num_launches}};
  for (const Way& way : ways) {
    result["ways"].push_back({{"way", way.name},
                              {"ns", median(way.seen)},
                              {"ns_above_bare", median(way.seen) - median(ways[0].seen)}});
  }
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int rounds = std::max(1, argc > 1 ? std::atoi(argv[1]) : 50);
    const WarmCalls warm;
    Json results = Json::array();
    for (const WarmCalls::Call& call : warm.calls()) {
      results.push_back(bench_call(warm, call, bare_launch(), rounds));
    }
    std::puts(Json({{"rounds", rounds}, {"calls", results}}).dump(1).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
