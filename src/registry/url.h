#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/secrets.h"

namespace cubist {

/// An http or https URL with its credentials taken out, so that `text` may be shown and sent to
/// anybody. Has neither user information nor fragment.
struct Url {
  std::string text;
  std::string scheme;  ///< "http" or "https"
  std::string host;    ///< lower case; IPv6 in brackets
  std::string port;    ///< digits; the scheme's own where none was given
  std::string user;    ///< decoded; empty if none was given
  std::string password;

  /// Scheme, host and port are the same: credentials for one are meant for the other.
  bool same_origin(const Url& other) const {
    return scheme == other.scheme && host == other.host && port == other.port;
  }
  /// This machine, whatever the resolver says: "localhost", 127.0.0.0/8, [::1].
  bool is_loopback() const;
  /// The text for messages: a query may hold a signature and is not shown.
  std::string shown() const;
};

bool looks_like_url(std::string_view text);

/// errors  kInvalidArgument: not an http(s) URL; the message has no credentials in it
Result<Url> parse_url(std::string_view text);

/// `reference` as a browser at `base` would follow it. Credentials of `base` stay with its origin.
Result<Url> resolve_url(const Url& base, std::string_view reference);

/// The file at a relative "/"-separated path below a folder; every segment is escaped as needed.
Result<Url> url_below(const Url& folder, std::string_view relative_path);

}  // namespace cubist
