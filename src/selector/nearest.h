#pragma once

#include <string>
#include <vector>

#include "selector/kernel_table.h"
#include "selector/request.h"
#include "selector/serves.h"

namespace cubist::selector {

/// One thing in which a kernel differs from what a problem needs.
struct Difference {
  Misfit misfit = Misfit::kNone;
  std::string field;   ///< as in problems and plans: "page_size", "dtype_o", ...
  std::string needed;  ///< what the problem has
  std::string found;   ///< what the kernel has
  std::string advice;  ///< what the caller could change; empty where nothing can be
};

struct NearKernel {
  const KernelRecord* record = nullptr;
  std::vector<Difference> differences;  ///< empty only for a kernel that serves
  std::int32_t distance = 0;            ///< the harder the differences are to change, the larger
};

/// The kernels of a pack that come closest to serving a problem, nearest first; each shows another
/// set of differences. Deterministic whatever the order of records. Walks the whole pack: for
/// explain, not for selection.
std::vector<NearKernel> find_nearest_kernels(const PackTable& table, const Request& request,
                                             std::size_t count);

}  // namespace cubist::selector
