#pragma once

#include <exception>
#include <new>

#include "base/result.h"
#include "capi/last_error.h"

namespace cubist::capi {

/// Runs the body of a C function: its Status becomes a code and the thread's last error, and
/// nothing that is thrown (bad_alloc, a stray of some library) leaves.
template <class Body>
cubist_status guard(Body&& body) noexcept {
  try {
    clear_last_error();
    const Status status = body();
    return status ? CUBIST_STATUS_OK : set_last_error(status.error());
  } catch (const std::bad_alloc&) {
    return set_last_error(StatusCode::kOutOfMemory, "out of memory");
  } catch (const std::exception& error) {
    return set_last_error(StatusCode::kInternal, error.what());
  } catch (...) {
    return set_last_error(StatusCode::kInternal, "an unknown exception");
  }
}

}  // namespace cubist::capi
