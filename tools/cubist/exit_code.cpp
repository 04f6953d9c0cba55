#include "exit_code.h"

#include "interrupt.h"

namespace cubist::tools {

ExitCode exit_code_for(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return ExitCode::kOk;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
      return ExitCode::kUsage;
    case StatusCode::kUnsupported:
      return ExitCode::kNoKernel;
    case StatusCode::kManifestInvalid:
      return ExitCode::kManifest;
    case StatusCode::kIntegrity:
    case StatusCode::kUntrusted:
      return ExitCode::kIntegrity;
    case StatusCode::kNetwork:
      return ExitCode::kNetwork;
    case StatusCode::kIo:
      return ExitCode::kDisk;
    case StatusCode::kOffline:
      return ExitCode::kOffline;
    case StatusCode::kDriverUnavailable:
    case StatusCode::kDriverError:
    case StatusCode::kDeviceMismatch:
    case StatusCode::kCapture:
    case StatusCode::kForked:
      return ExitCode::kDriver;
    case StatusCode::kInterrupted:
      return interrupting_signal() == 0 ? ExitCode::kInterrupted
                                        : static_cast<ExitCode>(128 + interrupting_signal());
    case StatusCode::kOutOfMemory:
    case StatusCode::kInternal:
      break;
  }
  return ExitCode::kInternal;
}

}  // namespace cubist::tools
