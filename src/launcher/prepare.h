#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/kernel_record.h"

namespace cubist::launcher {

/// The driver loads one module at a time, so threads help with reading and hashing alone:
/// docs/results/h200-launch-api.md.
inline constexpr unsigned kMaxPrepareThreads = 4;

/// Brings the bytes of kernels to where the launcher's CubinSource finds them at once. What it
/// fails for, the source will be asked for.
using BringKernels = std::function<Status(std::span<const KernelRecord* const>)>;

/// What became of one kernel that was to be prepared.
struct PreparedKernel {
  const KernelRecord* record = nullptr;
  bool was_loaded = false;    ///< before; nothing was to be done
  double milliseconds = 0.0;  ///< reading, hashing and loading it, on its thread
  std::optional<Error> error;
};

struct PrepareReport {
  std::vector<PreparedKernel> kernels;  ///< one a record, in their order
  double milliseconds = 0.0;            ///< from the call to its end
  double bring_milliseconds = 0.0;      ///< among them: for bytes that were not in the store
  unsigned num_threads = 0;             ///< that loaded, the caller's included

  std::size_t num_loaded() const;  ///< by this call
  std::size_t num_present() const;
  std::size_t num_failed() const;
  /// The first failure, with how many more there are.
  Status status() const;
};

}  // namespace cubist::launcher
