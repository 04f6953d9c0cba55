// Host time of one warm launch, beside the bare cuLaunchKernelEx of the same kernel, parameters and
// attributes, and what it allocates; of a static kernel and of a persistent one, whose descriptors
// are encoded anew by each launch.

#include "call.h"

namespace cubist::bench {
namespace {

constexpr int kInARow = 200;  // fewer than a stream takes before it makes the host wait
constexpr double kWarmUpMicroseconds = 1e6;

using Launch = std::function<void()>;

struct NamedLaunch {
  std::string name;
  Launch launch;
};

/// Microseconds of host time a launch.
double of_one(const Call& call, const Launch& launch) {
  const double all = microseconds([&] {
    for (int i = 0; i < kInARow; ++i) launch();
  });
  call.synchronize();
  return all / kInARow;
}

std::uint64_t allocations_of(const Call& call, const Launch& launch) {
  const std::uint64_t before = allocations();
  for (int i = 0; i < kInARow; ++i) launch();
  const std::uint64_t after = allocations();
  call.synchronize();
  return after - before;
}

std::vector<NamedLaunch> launches_of(const Call& call) {
  return {{"bare cuLaunchKernelEx", [&] { call.launch_bare(); }},
          {"Selected::launch", [&] { call.launch_selected(); }},
          {"cubist_selection_launch", [&] { call.launch_selection(); }},
          {"cubist_runtime_launch", [&] { call.launch_runtime(); }},
          {"Selected::launch but for cuLaunchKernelEx", [&] { call.launch_nothing(); }}};
}

Json result_of(const Call& call, const std::vector<NamedLaunch>& launches, const Way* ways) {
  Json result = {{"kernel", call.plan().record->name},
                 {"batch", call.plan().batch},
                 {"launches_in_a_row", kInARow}};
  const double bare = median(ways[0].seen);
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const double us = median(ways[i].seen);
    result["ways"].push_back({{"way", ways[i].name},
                              {"us", us},
                              {"us_above_bare", us - bare},
                              {"of_bare", us / bare},
                              {"allocations", allocations_of(call, launches[i].launch)}});
  }
  return result;
}

}  // namespace

Json bench_warm(const Bench& bench) {
  const auto runtime = bench.open_runtime();
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::vector<NamedLaunch>> launches;
  std::vector<Way> ways;
  for (const bool persistent : {false, true}) {
    calls.push_back(std::make_unique<Call>(bench, *runtime, persistent));
    launches.push_back(launches_of(*calls.back()));
    for (const NamedLaunch& named : launches.back()) {
      const Call& call = *calls.back();
      ways.push_back(
          {named.name, [&call, launch = named.launch] { return of_one(call, launch); }, {}});
    }
  }
  // Loads, fills memos, and lets the processor come to its speed.
  const auto start = Clock::now();
  do {
    for (const Way& way : ways) way.measure();
  } while (std::chrono::duration<double, std::micro>(Clock::now() - start).count() <
           kWarmUpMicroseconds);
  run_in_turns(ways, bench.rounds);
  Json result = Json::array();
  for (std::size_t i = 0; i < calls.size(); ++i) {
    result.push_back(result_of(*calls[i], launches[i], &ways[i * launches[i].size()]));
  }
  return result;
}

}  // namespace cubist::bench
