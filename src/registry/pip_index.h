#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>

#include "registry/http_client.h"
#include "registry/pip_settings.h"

namespace cubist {

/// A wheel that the user's pip would find: on this machine, or behind a URL.
struct LocalWheel {
  std::string path;
};
struct RemoteWheel {
  Url url;
  std::string sha256;  ///< as the index says; empty if it does not. Names a version, proves nothing
  std::shared_ptr<const HttpProfile> profile;
};
using PipWheel = std::variant<LocalWheel, RemoteWheel>;

/// Looks for "name==version" as pip would: find-links first, then each index (its JSON form).
/// base    timeouts, tries and credentials; pip's certificates and proxy go before its own
/// errors  kNotFound: no python or pip, or no index lists that wheel. kNetwork: no index answered
Result<PipWheel> find_pip_wheel(HttpClient& client, std::string_view requirement,
                                const HttpProfile& base);
/// The same with settings from elsewhere.
Result<PipWheel> find_pip_wheel(HttpClient& client, std::string_view requirement,
                                const HttpProfile& base, const PipSettings& settings);

}  // namespace cubist
