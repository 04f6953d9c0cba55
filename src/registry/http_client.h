#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"
#include "registry/http_request.h"

namespace cubist {

/// Makes HTTP requests, many at once over one set of connections (libcurl multi; HTTP/2 over TLS
/// where the server has it). Everything happens in the thread that calls step() or get(); one
/// thread at a time, except wake(). Destroying it drops what is unfinished without calling back.
class HttpClient {
 public:
  /// parallel  the most exchanges, and so connections, at once; further requests wait their turn
  /// cancel    looked at ten times a second; once true, everything ends with kInterrupted. May be
  /// null
  explicit HttpClient(unsigned parallel = 1, const std::atomic<bool>* cancel = nullptr);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  using Done = std::function<void(HttpResult)>;
  /// `done` is called once from a later step() or get(); it may start() others.
  void start(HttpRequest request, Done done);
  /// Moves everything along; returns as soon as something was done, or after max_wait.
  void step(std::chrono::milliseconds max_wait);
  /// Started and not done.
  std::size_t pending() const;

  /// One request of any method, start to end. Others that were started move along meanwhile.
  HttpResult get(HttpRequest request);

  /// Ends a step() that waits. Safe from any thread.
  void wake();

  HttpCounters counters() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// For callers who need no more than the reason.
Result<HttpResponse> to_result(HttpResult result);

}  // namespace cubist
