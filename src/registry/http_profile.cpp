#include <sys/stat.h>

#include <cstdlib>
#include <mutex>

#include "base/log.h"
#include "registry/http_request.h"

namespace cubist {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

void set_bundle(HttpProfile& profile, const std::string& path) {
  (is_folder(path) ? profile.ca_folder : profile.ca_file) = path;
}

void read_bearer_tokens(HttpProfile& profile, const std::string& text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string entry = text.substr(begin, end - begin);
    const std::size_t sign = entry.find('=');
    if (sign != std::string::npos && sign != 0) {
      profile.bearer_tokens.emplace_back(entry.substr(0, sign), entry.substr(sign + 1));
    } else if (!entry.empty()) {
      // Every client reads the variable; once is enough to hear of it.
      static std::once_flag once;
      std::call_once(once, [] {
        log(LogLevel::kWarning,
            "CUBIST_BEARER_TOKEN: an entry is not of the form host=token; ignored");
      });
    }
    begin = end + 1;
  }
}

}  // namespace

HttpProfile http_profile_from_environment() {
  HttpProfile profile;
  if (const std::string bundle = environment("CURL_CA_BUNDLE"); !bundle.empty()) {
    set_bundle(profile, bundle);
  } else if (const std::string file = environment("SSL_CERT_FILE"); !file.empty()) {
    profile.ca_file = file;
    profile.ca_folder = environment("SSL_CERT_DIR");
  } else if (const std::string folder = environment("SSL_CERT_DIR"); !folder.empty()) {
    profile.ca_folder = folder;
  } else if (const std::string python = environment("REQUESTS_CA_BUNDLE"); !python.empty()) {
    set_bundle(profile, python);
  }
  profile.netrc_file = environment("NETRC");
  read_bearer_tokens(profile, environment("CUBIST_BEARER_TOKEN"));
  return profile;
}

}  // namespace cubist
