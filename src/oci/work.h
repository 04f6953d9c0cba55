#pragma once

#include <cstddef>
#include <functional>

#include "base/result.h"

namespace cubist::oci {

/// Runs work(item, thread) for the items 0 ... count - 1 on so many threads (0 ... threads - 1),
/// each taking the next item that nobody has. After a failure nothing new is begun; the first one
/// is handed on.
Status in_parallel(std::size_t count, unsigned threads,
                   const std::function<Status(std::size_t, unsigned)>& work);

}  // namespace cubist::oci
