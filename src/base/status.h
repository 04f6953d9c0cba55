#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cubist {

/// Why something failed. The numbers are part of the C ABI (CUBIST_STATUS_*): pinned, in groups
/// with gaps, never reused. Groups: 1-9 the request, 10-19 the manifest, 20-29 bytes and where they
/// come from, 30-39 the driver and the GPU, 90-99 the process.
enum class StatusCode : std::int32_t {
  kOk = 0,
  kInvalidArgument = 1,   // a field out of range or contradictory; the message names field and rule
  kNotFound = 2,          // a name, hash or file that is not there
  kUnsupported = 3,       // no kernel serves the problem
  kOutOfMemory = 4,       // host memory
  kManifestInvalid = 10,  // a manifest (or the text it is made from) breaks its own rules
  kIntegrity = 20,        // bytes differ from their digest, size or structure
  kNetwork = 21,          // a source could not be reached or answered with an error
  kIo = 22,               // disk or permission
  kOffline = 23,          // missing here, and fetching was not allowed
  kUntrusted = 24,        // signature, serial, revocation or ownership: trust was not given
  kDriverUnavailable = 30,  // no libcuda, or no device
  kDriverError = 31,        // a driver call failed; the message has its name and number
  kDeviceMismatch = 32,     // the kernel cannot run on this device
  kCapture = 33,            // a load would be needed while the stream is being captured
  kForked = 34,             // the driver was initialised before fork(); it is unusable in the child
  kInterrupted = 90,        // the caller or a signal asked to stop
  kInternal = 99,           // a fault of ours
};

/// "integrity", "network", ...: the word used in JSON and logs.
std::string_view to_string(StatusCode code);

/// A failure: a code that programs act on and a sentence for people. The sentence says what failed,
/// what was found, what was expected and what to do next.
class Error {
 public:
  Error(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same code with "context: " in front of the sentence.
  Error with_context(std::string_view context) && {
    return Error(code_, fmt::format("{}: {}", context, message_));
  }

 private:
  StatusCode code_;
  std::string message_;
};

}  // namespace cubist
