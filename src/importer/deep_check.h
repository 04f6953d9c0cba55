#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "importer/file_tree.h"
#include "importer/report.h"
#include "manifest/manifest.h"

namespace cubist {

/// Reads the file of every kernel once and compares it with the record: digest, and all that
/// cross_check compares. Runs on `threads` threads; findings are in the pack's order whatever the
/// number.
///
/// progress  files done so far in this call; one thread at a time
/// cancel    looked at between files; may be null
/// errors    a file that cannot be read at all; kInterrupted
Result<std::vector<Finding>> deep_check(const FileTree& tree, const std::string& prefix,
                                        const Pack& pack, unsigned threads,
                                        const std::function<void(std::uint64_t)>& progress,
                                        const std::atomic<bool>* cancel);

}  // namespace cubist
