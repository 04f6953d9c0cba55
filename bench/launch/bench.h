#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "driver/driver.h"
#include "runtime/runtime.h"

namespace cubist::bench {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

/// The first GPU with its primary context current, and runtimes over the shipped manifests with one
/// store.
struct Bench {
  std::shared_ptr<driver::Driver> driver;
  cuda::CUcontext context = nullptr;
  std::string store;
  int rounds = 0;

  std::shared_ptr<runtime::Runtime> open_runtime() const;
};

/// Ends the program with the message; for what must not fail in a bench.
void require(const Status& status);
void require(cuda::CUresult result, const char* call);
template <class T>
T require(Result<T> result) {
  if (!result) require(Status(tl::unexpected<Error>(result.error())));
  return std::move(*result);
}

double median(std::vector<double> values);
/// Microseconds of one call of `work`.
double microseconds(const std::function<void()>& work);

/// One way to do the same thing, and what it took in each round.
struct Way {
  std::string name;
  std::function<double()> measure;  ///< microseconds a launch (or a load)
  std::vector<double> seen;
};
/// Measures the ways in turn, `rounds` times, in a changing order.
void run_in_turns(std::vector<Way>& ways, int rounds);

/// operator new calls of this thread since it began.
std::uint64_t allocations();

Json bench_warm(const Bench& bench);
Json bench_cold(const Bench& bench);
Json bench_prepare(const Bench& bench);
Json bench_prepare_store(const Bench& bench);
Json bench_threads(const Bench& bench);

}  // namespace cubist::bench
