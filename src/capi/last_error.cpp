#include "capi/last_error.h"

#include <string>

namespace cubist::capi {
namespace {

struct LastError {
  std::string message;
  const char* fixed = nullptr;  ///< a literal, where there was no memory for a copy
};

LastError& last_error() {
  thread_local LastError error;
  return error;
}

cubist_status keep(StatusCode code, const char* message) noexcept {
  LastError& error = last_error();
  try {
    error.message = message;
    error.fixed = nullptr;
  } catch (...) {
    error.fixed = "out of memory while reporting an error";
  }
  return static_cast<cubist_status>(code);
}

}  // namespace

cubist_status set_last_error(const Error& error) noexcept {
  return keep(error.code(), error.message().c_str());
}

cubist_status set_last_error(StatusCode code, const char* message) noexcept {
  return keep(code, message);
}

void clear_last_error() noexcept {
  LastError& error = last_error();
  error.message.clear();
  error.fixed = nullptr;
}

const char* last_error_message() noexcept {
  const LastError& error = last_error();
  return error.fixed != nullptr ? error.fixed : error.message.c_str();
}

}  // namespace cubist::capi
