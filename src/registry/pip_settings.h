#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "registry/http_request.h"

namespace cubist {

/// Where the user's own pip would look for packages, and how it would get there.
struct PipSettings {
  std::vector<std::string> index_urls;  ///< index-url (or pip's built-in default), extra-index-urls
  std::vector<std::string> find_links;  ///< folders, file: URLs, pages
  std::string cert;
  std::string client_cert;
  std::string proxy;
  std::vector<std::string> trusted_hosts;
};

/// Asks pip itself (the one of python3 on PATH, or of CUBIST_PYTHON), so that configuration files,
/// PIP_* variables and the built-in default count exactly as they do for `pip install`. errors
/// kNotFound: no python3 or no pip. kIo: pip did not answer
Result<PipSettings> ask_pip();

/// What ask_pip() parses: the JSON that its question prints.
Result<PipSettings> parse_pip_settings(const std::string& json_text);

/// `base` with pip's certificates, proxy and trusted hosts in front.
std::shared_ptr<const HttpProfile> profile_for_pip(const PipSettings& settings,
                                                   const HttpProfile& base);

}  // namespace cubist
