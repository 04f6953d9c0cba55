#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "base/status.h"
#include "registry/retry.h"
#include "registry/url.h"

namespace cubist {

/// How to reach servers: what curl (or pip) users have set up, and how long to wait.
struct HttpProfile {
  std::string ca_file;      ///< PEM bundle; empty: libcurl's own
  std::string ca_folder;    ///< hashed certificates
  std::string client_cert;  ///< PEM with certificate and key
  std::string proxy;  ///< empty: http_proxy, https_proxy, all_proxy, no_proxy as curl reads them
  std::string netrc_file;  ///< empty: ~/.netrc
  /// "host" or "host:port" whose certificate is not checked (pip's trusted-host).
  std::vector<std::string> trusted_hosts;
  /// host -> token; sent by https (or to this machine) to that host only.
  std::vector<std::pair<std::string, std::string>> bearer_tokens;
  std::chrono::milliseconds connect_timeout{15'000};
  /// Longest time without kMinProgressBytes more.
  std::chrono::milliseconds stall_timeout{30'000};
  RetryPolicy retry;
};

/// CA: CURL_CA_BUNDLE, else SSL_CERT_FILE and SSL_CERT_DIR, else REQUESTS_CA_BUNDLE. NETRC.
/// CUBIST_BEARER_TOKEN: "host=token", several separated by ",".
HttpProfile http_profile_from_environment();

/// The beginning of a body, and the validator of the version it is of.
struct PartialBody {
  std::vector<std::uint8_t> bytes;
  std::string validator;
};

struct HttpRequest {
  /// Bytes [offset, offset + length) of the file.
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  Url url;
  std::shared_ptr<const HttpProfile> profile;
  std::string accept;                          ///< Accept header; empty: anything
  std::optional<Range> range;                  ///< answered by exactly these bytes or an error
  std::optional<std::uint64_t> last_bytes;     ///< or: the last so many (all, if there are fewer)
  std::string if_range;                        ///< validator of the version the range is meant for
  std::optional<std::uint64_t> total_size;     ///< the whole file's size, if known; must not differ
  std::uint64_t max_bytes = 0;                 ///< a longer body is refused
  std::shared_ptr<const PartialBody> partial;  ///< go on from here if the server still has it
  bool html_is_fine = false;  ///< else a page in place of the file is named as such
};

struct HttpResponse {
  Url final_url;  ///< after redirects
  std::vector<std::uint8_t> body;
  std::string content_type;
  std::string validator;                    ///< for If-Range; may be empty
  std::optional<std::uint64_t> total_size;  ///< of the whole file, if the server said so
  bool changed = false;  ///< the server has another version than if_range names; no body
  bool resumed = false;  ///< the body was put together from several answers
};

struct HttpError {
  Error error;
  int status = 0;                              ///< of the last answer; 0 if there was none
  bool unreachable = false;                    ///< no server could be talked to
  std::shared_ptr<const PartialBody> partial;  ///< what a later request can go on from; may be null
};

using HttpResult = tl::expected<HttpResponse, HttpError>;

struct HttpCounters {
  std::uint64_t requests = 0;  ///< sent, redirects and retries included
  std::uint64_t retries = 0;
  std::uint64_t received_bytes = 0;  ///< of bodies
};

}  // namespace cubist
