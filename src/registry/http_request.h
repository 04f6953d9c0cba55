#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

#include "archive/random_access.h"
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

enum class HttpMethod : std::uint8_t { kGet, kHead, kPost, kPatch, kPut };
/// "GET", "HEAD", ...
std::string_view to_string(HttpMethod method);

/// What is sent: bytes [offset, offset + length) of a file or of memory, never held as a whole.
struct HttpBody {
  std::shared_ptr<RandomAccess> from;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Where a body goes that is not to be kept in memory. Called from the client's thread.
class HttpSink {
 public:
  virtual ~HttpSink() = default;
  virtual Status write(std::span<const std::uint8_t> bytes) = 0;
  /// The server begins the body anew: what this request wrote is void.
  virtual Status restart() = 0;
};

struct HttpRequest {
  /// Bytes [offset, offset + length) of the file.
  struct Range {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
  };

  Url url;
  HttpMethod method = HttpMethod::kGet;
  std::shared_ptr<const HttpProfile> profile;
  std::string accept;                          ///< Accept header; empty: anything
  std::optional<Range> range;                  ///< answered by exactly these bytes or an error
  std::optional<std::uint64_t> last_bytes;     ///< or: the last so many (all, if there are fewer)
  std::string if_range;                        ///< validator of the version the range is meant for
  std::optional<std::uint64_t> total_size;     ///< the whole file's size, if known; must not differ
  std::uint64_t max_bytes = 0;                 ///< a longer body is refused
  std::shared_ptr<const PartialBody> partial;  ///< go on from here if the server still has it
  bool html_is_fine = false;         ///< else a page in place of the file is named as such
  std::vector<std::string> headers;  ///< more of them, "Name: value"
  std::optional<HttpBody> body;      ///< of POST, PATCH and PUT
  std::shared_ptr<HttpSink> sink;    ///< in place of HttpResponse::body; may be null
  /// Value of the header Authorization ("" for none) in place of what URL, netrc and profile have;
  /// sent to the URL's own origin only.
  std::optional<std::string> authorization;
  /// Refusals (401, 404, ...) are answers too, not errors: look at HttpResponse::status.
  bool any_status = false;
};

struct HttpResponse {
  int status = 0;
  Url final_url;  ///< after redirects
  std::vector<std::uint8_t> body;
  std::string content_type;
  std::string validator;                    ///< for If-Range; may be empty
  std::optional<std::uint64_t> total_size;  ///< of the whole file, if the server said so
  bool changed = false;  ///< the server has another version than if_range names; no body
  bool resumed = false;  ///< the body was put together from several answers
  std::optional<std::uint64_t> content_length;  ///< of this answer; of HEAD, what GET would send
  std::string location;
  std::string content_digest;           ///< Docker-Content-Digest
  std::vector<std::string> challenges;  ///< WWW-Authenticate, one for each such header
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
