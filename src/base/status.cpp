#include "base/status.h"

namespace cubist {

std::string_view to_string(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOutOfMemory:
      return "out_of_memory";
    case StatusCode::kManifestInvalid:
      return "manifest_invalid";
    case StatusCode::kIntegrity:
      return "integrity";
    case StatusCode::kNetwork:
      return "network";
    case StatusCode::kIo:
      return "io";
    case StatusCode::kOffline:
      return "offline";
    case StatusCode::kUntrusted:
      return "untrusted";
    case StatusCode::kDriverUnavailable:
      return "driver_unavailable";
    case StatusCode::kDriverError:
      return "driver_error";
    case StatusCode::kDeviceMismatch:
      return "device_mismatch";
    case StatusCode::kCapture:
      return "capture";
    case StatusCode::kForked:
      return "forked";
    case StatusCode::kInterrupted:
      return "interrupted";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";
}

}  // namespace cubist
