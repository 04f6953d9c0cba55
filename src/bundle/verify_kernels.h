#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

#include "base/result.h"
#include "bundle/bundle.h"

namespace cubist::bundle {

/// Unpacks and hashes every kernel; writes nothing.
///
/// threads   more than one only where the file may be read by several at once
/// progress  told by the calling thread how many are done; may be empty
/// errors    kIntegrity: the first kernel in the file's order that is not what bundle.json names;
///           kInterrupted
Status verify_kernels(const Bundle& bundle, unsigned threads,
                      const std::atomic<bool>* cancel = nullptr,
                      const std::function<void(std::size_t)>& progress = {});

}  // namespace cubist::bundle
