#pragma once

#include "base/status.h"

namespace cubist::tools {

/// What the command line ends with; documented in the README and in `cubist --help`.
enum class ExitCode : int {
  kOk = 0,
  kInternal = 1,
  kUsage = 2,
  kNoKernel = 3,
  kIntegrity = 4,
  kNetwork = 5,
  kDisk = 6,
  kOffline = 7,
  kManifest = 8,
  kDriver = 9,
  kInterrupted = 130,  ///< by Ctrl-C; by another signal: 128 and its number
};

ExitCode exit_code_for(StatusCode code);

}  // namespace cubist::tools
