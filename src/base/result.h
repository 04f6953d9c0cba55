#pragma once

#include <string_view>
#include <utility>

#include <tl/expected.hpp>

#include "base/status.h"

namespace cubist {

/// A value or an Error. Only adds [[nodiscard]] to tl::expected, which lacks it.
template <class T>
class [[nodiscard]] Result : public tl::expected<T, Error> {
 public:
  using Base = tl::expected<T, Error>;
  using Base::Base;
  Result(const Base& other) : Base(other) {}
  Result(Base&& other) noexcept : Base(std::move(other)) {}
};

/// Success or an Error.
using Status = Result<void>;

/// return fail(StatusCode::kIo, "cannot open '{}': {}", path, reason);
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(StatusCode code, fmt::format_string<Args...> text,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error(code, fmt::format(text, std::forward<Args>(args)...)));
}

/// Hands on the failure of `result`; only for a result that failed.
template <class T>
[[nodiscard]] tl::unexpected<Error> forward_error(Result<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}

/// The same with a sentence in front.
template <class T>
[[nodiscard]] tl::unexpected<Error> forward_error(Result<T>& result, std::string_view context) {
  return tl::unexpected<Error>(std::move(result.error()).with_context(context));
}

}  // namespace cubist

#define CUBIST_CONCAT_INNER(a, b) a##b
#define CUBIST_CONCAT(a, b) CUBIST_CONCAT_INNER(a, b)

/// Leaves the enclosing function with the Error if `expression` (a Result or Status) failed.
#define CUBIST_RETURN_IF_ERROR(expression)                     \
  do {                                                         \
    if (auto cubist_status_ = (expression); !cubist_status_) { \
      return ::cubist::forward_error(cubist_status_);          \
    }                                                          \
  } while (false)

/// CUBIST_ASSIGN_OR_RETURN(Manifest manifest, parse_manifest(text));
#define CUBIST_ASSIGN_OR_RETURN(target, expression) \
  CUBIST_ASSIGN_OR_RETURN_INNER(CUBIST_CONCAT(cubist_result_, __LINE__), target, expression)
#define CUBIST_ASSIGN_OR_RETURN_INNER(name, target, expression) \
  auto name = (expression);                                     \
  if (!name) return ::cubist::forward_error(name);              \
  target = std::move(*name)
