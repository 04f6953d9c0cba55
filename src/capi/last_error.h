#pragma once

#include "base/status.h"
#include "cubist/cubist.h"

namespace cubist::capi {

/// Keeps the failure's words for the calling thread; returns its code. Throws nothing.
cubist_status set_last_error(const Error& error) noexcept;
/// The same for a failure without an Error: no memory, an exception of somebody else's.
cubist_status set_last_error(StatusCode code, const char* message) noexcept;
void clear_last_error() noexcept;
const char* last_error_message() noexcept;

}  // namespace cubist::capi
