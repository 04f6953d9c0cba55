#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "oci/reference.h"
#include "registry/http_client.h"

namespace cubist::oci {

/// A client for each of several threads.
class Clients {
 public:
  Clients(unsigned threads, const std::atomic<bool>* cancel) {
    for (unsigned i = 0; i < std::max(1U, threads); ++i) {
      clients_.push_back(std::make_unique<HttpClient>(1, cancel));
    }
  }
  HttpClient& operator[](unsigned thread) { return *clients_[thread]; }
  HttpCounters counters() const;

 private:
  std::vector<std::unique_ptr<HttpClient>> clients_;
};

enum class Access : std::uint8_t { kPull, kPush };

struct ConnectOptions {
  /// http in place of https. Not said: for this machine alone (localhost, 127.0.0.0/8, [::1]).
  std::optional<bool> plain_http;
  std::shared_ptr<const HttpProfile> profile;  ///< null: from the environment
  const std::atomic<bool>* cancel = nullptr;
  unsigned parallel = 4;  ///< transfers at once
};

/// One repository of one registry, and the right to use it. Credentials are looked up when the
/// registry first asks for some; they and the tokens they bring are sent by https or to this
/// machine only, to the registry and its token server only, and are in no message or log. Safe
/// from any thread; each thread has a client of its own.
class Session {
 public:
  /// errors  kInvalidArgument
  static Result<std::shared_ptr<Session>> open(const Reference& reference, Access access,
                                               const ConnectOptions& options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// <scheme>://<host>/v2/<repository>/<path>; the path is sent as it is.
  Url url(std::string_view path) const;
  const Reference& reference() const;

  /// Makes the request with what the registry wants to see, asking the token server where needed.
  /// Any answer but a refusal to say who one is comes back; see HttpResponse::status.
  ///
  /// errors  kNetwork: also 401 with the best there is; kInvalidArgument, kIo: credentials that
  ///         cannot be read; those of HttpClient::get
  Result<HttpResponse> send(HttpClient& client, HttpRequest request);

  RetryPolicy retry() const;
  /// For requests that are not to be made again as they are.
  std::shared_ptr<const HttpProfile> profile_for_one_try() const;

  /// Value of the header Authorization for requests that others make; empty: none is needed.
  std::string authorization() const;
  /// Drops it; the next send() gets another.
  void forget_authorization();

 private:
  struct State;
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// "GET https://host/v2/x/manifests/y: 404: 'manifest unknown'; ADVICE": a refusal as an error.
///
/// request  what was asked for, as messages call it
Error refusal(const HttpResponse& response, std::string_view request);

}  // namespace cubist::oci
