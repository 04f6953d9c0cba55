#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "driver/driver_status.h"
#include "driver/driver_table.h"

namespace cubist::driver {

/// An opened libcuda with its own knowledge of whether cuInit was called, and in which process.
/// Safe from any thread. Several may exist; libcuda itself is one a process.
class Driver {
 public:
  /// Opens libcuda (see load_driver_table); calls no cuInit.
  static Result<std::shared_ptr<Driver>> open();
  static Result<std::shared_ptr<Driver>> open(const std::vector<std::string>& names);

  explicit Driver(DriverTable table);

  const DriverTable& table() const { return table_; }

  /// cuInit, once; afterwards one atomic load. Called by device queries, prepare and launch only.
  ///
  /// errors  kForked: this process was forked from one in which the driver was initialised
  ///         kDriverUnavailable: no device; a failed init is tried again by the next call
  Status init();

  /// Whether this process may use what init() set up: false before it, and in a forked child.
  bool usable() const;

  Status check(CUresult result, std::string_view call) const {
    if (result == CUDA_SUCCESS) return {};
    return check_driver(table_, result, call);
  }

 private:
  Status init_slowly();

  DriverTable table_;
  /// Fork generation in which cuInit succeeded; 0 = not yet.
  std::atomic<std::uint64_t> initialised_in_{0};
  std::mutex mutex_;
};

/// Counts forks between this process and the one that first asked; starts at 1.
std::uint64_t fork_generation();

}  // namespace cubist::driver
