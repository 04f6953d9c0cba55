#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.h"
#include "driver/driver.h"
#include "gpu_session.h"
#include "runtime/selected.h"
#include "tuning/grid.h"
#include "tuning/measured.h"

namespace cubist::tools {

/// Times every way to launch the problems of a grid, through selector, store and launcher: of each
/// kernel that the rules weigh, each split. Launches follow one another over KV of different
/// places, so that a cache seldom has what the next one reads.
class TuneMeasure {
 public:
  struct Options {
    tuning::Grid grid = tuning::Grid::kQuick;
    std::int64_t memory_bytes = 0;  ///< device memory for K and V
    /// Problems done and in all.
    std::function<void(std::size_t, std::size_t)> progress;
    const std::atomic<bool>* cancel = nullptr;
  };

  /// driver and session outlive the object; the session's context is current
  TuneMeasure(driver::Driver& driver, GpuSession& session,
              std::shared_ptr<runtime::Runtime> runtime, const DeviceProfile& device)
      : driver_(driver), session_(session), runtime_(std::move(runtime)), device_(device) {}

  /// errors  kDeviceMismatch: no kernel of the manifests serves any of the problems; kInterrupted;
  ///         of Selected::launch; kUnsupported: the driver has no events
  Result<std::vector<tuning::Measured>> run(const Options& options);

 private:
  /// Device memory that problems use one after another.
  struct Arena {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
  };

  Status prepare_memory(const std::vector<AttentionProblem>& problems, std::int64_t memory_bytes);
  Result<launcher::CallArgs> arrange(AttentionProblem& problem);
  Status measure_problem(std::size_t number, AttentionProblem problem,
                         std::vector<tuning::Measured>& rows);
  Result<double> measure_plan(const AttentionProblem& problem, const LaunchPlan& plan,
                              launcher::CallArgs args);
  Status grow(Arena& arena, std::uint64_t bytes);

  driver::Driver& driver_;
  GpuSession& session_;
  std::shared_ptr<runtime::Runtime> runtime_;
  DeviceProfile device_;
  Arena k_;
  Arena v_;
  Arena q_;
  Arena o_;
  Arena table_;
  Arena lengths_;
  Arena workspace_;
  tuning::Grid grid_ = tuning::Grid::kQuick;
  std::int64_t places_ = 1;        ///< of the problem at hand: block tables, one behind the other
  std::uint64_t table_bytes_ = 0;  ///< of one of them
};

}  // namespace cubist::tools
