#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cubist {

struct ProcessOutput {
  int exit_code = 0;  ///< 128 + signal if it was killed by one
  std::string out;    ///< standard output
  std::string err;    ///< standard error
};

/// Runs a program found on PATH, without a shell, and waits.
///
/// input   its standard input, 4 KiB at most: what a pipe takes before anybody reads
/// errors  kNotFound: no such program. kIo: it could not be run, ran past the timeout (and was
///         killed) or wrote more than 16 MiB
Result<ProcessOutput> run_process(const std::vector<std::string>& arguments,
                                  std::chrono::milliseconds timeout, std::string_view input = {});

}  // namespace cubist
