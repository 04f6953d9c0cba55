// 8 threads on 8 streams at once: launches a second, beside bare launches.

#include <atomic>
#include <thread>

#include "call.h"

namespace cubist::bench {
namespace {

constexpr int kThreads = 8;
constexpr int kBursts = 20;
constexpr int kInARow = 100;

/// Microseconds a launch, all threads together.
double all_threads(const Bench& bench, const std::vector<std::unique_ptr<Call>>& calls,
                   const std::function<void(const Call&)>& launch) {
  std::atomic<int> waiting{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (const auto& call : calls) {
    threads.emplace_back([&bench, &waiting, &go, &launch, &call] {
      require(bench.driver->table().cuCtxPushCurrent(bench.context), "cuCtxPushCurrent");
      launch(*call);
      call->synchronize();
      ++waiting;
      while (!go) std::this_thread::yield();
      for (int burst = 0; burst < kBursts; ++burst) {
        for (int i = 0; i < kInARow; ++i) launch(*call);
        call->synchronize();
      }
    });
  }
  while (waiting < kThreads) std::this_thread::yield();
  const double all = microseconds([&] {
    go = true;
    for (std::thread& thread : threads) thread.join();
  });
  return all / (kThreads * kBursts * kInARow);
}

}  // namespace

Json bench_threads(const Bench& bench) {
  const auto runtime = bench.open_runtime();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kThreads; ++i) {
    calls.push_back(std::make_unique<Call>(bench, *runtime, false));
  }
  std::vector<Way> ways = {
      {"bare cuLaunchKernelEx",
       [&] { return all_threads(bench, calls, [](const Call& call) { call.launch_bare(); }); },
       {}},
      {"cubist_selection_launch",
       [&] { return all_threads(bench, calls, [](const Call& call) { call.launch_selection(); }); },
       {}},
      {"cubist_runtime_launch",
       [&] { return all_threads(bench, calls, [](const Call& call) { call.launch_runtime(); }); },
       {}}};
  run_in_turns(ways, std::max(3, bench.rounds / 10));
  Json result = {{"threads", kThreads}};
  const double bare = median(ways[0].seen);
  for (const Way& way : ways) {
    result["ways"].push_back({{"way", way.name},
                              {"launches_per_second", 1e6 / median(way.seen)},
                              {"throughput_of_bare", bare / median(way.seen)}});
  }
  return result;
}

}  // namespace cubist::bench
