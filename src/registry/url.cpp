#include "registry/url.h"

#include <arpa/inet.h>
#include <curl/curl.h>

#include <algorithm>
#include <memory>

namespace cubist {
namespace {

using CurlUrl = std::unique_ptr<CURLU, decltype(&curl_url_cleanup)>;

CurlUrl new_handle() { return {curl_url(), &curl_url_cleanup}; }

std::string part(const CurlUrl& handle, CURLUPart which, unsigned flags = 0) {
  char* raw = nullptr;
  if (curl_url_get(handle.get(), which, &raw, flags) != CURLUE_OK || raw == nullptr) return {};
  std::string text(raw);
  curl_free(raw);
  return text;
}

Result<Url> take_apart(const CurlUrl& handle, std::string_view shown) {
  Url url;
  url.scheme = part(handle, CURLUPART_SCHEME);
  if (url.scheme != "http" && url.scheme != "https") {
    return fail(StatusCode::kInvalidArgument, "'{}' is not an http or https URL",
                shown_value(shown));
  }
  url.host = part(handle, CURLUPART_HOST);
  std::transform(url.host.begin(), url.host.end(), url.host.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  curl_url_set(handle.get(), CURLUPART_HOST, url.host.c_str(), 0);
  url.port = part(handle, CURLUPART_PORT, CURLU_DEFAULT_PORT);
  url.user = part(handle, CURLUPART_USER, CURLU_URLDECODE);
  url.password = part(handle, CURLUPART_PASSWORD, CURLU_URLDECODE);
  for (const CURLUPart secret :
       {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_FRAGMENT}) {
    curl_url_set(handle.get(), secret, nullptr, 0);
  }
  url.text = part(handle, CURLUPART_URL);
  if (url.host.empty() || url.text.empty()) {
    return fail(StatusCode::kInvalidArgument, "'{}' is not a usable URL", shown_value(shown));
  }
  return url;
}

Error bad_url(std::string_view text) {
  return Error(StatusCode::kInvalidArgument,
               fmt::format("'{}' is not a usable URL", shown_value(text)));
}

}  // namespace

std::string Url::shown() const {
  const std::size_t query = text.find('?');
  return query == std::string::npos ? text : text.substr(0, query) + "?...";
}

bool Url::is_loopback() const {
  if (host == "localhost" || host == "[::1]") return true;
  in_addr address{};
  constexpr std::uint32_t kNet = 127;
  return ::inet_pton(AF_INET, host.c_str(), &address) == 1 && ntohl(address.s_addr) >> 24 == kNet;
}

bool looks_like_url(std::string_view text) {
  return text.starts_with("http://") || text.starts_with("https://");
}

Result<Url> parse_url(std::string_view text) {
  const CurlUrl handle = new_handle();
  const CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, std::string(text).c_str(), 0);
  if (code != CURLUE_OK) return tl::unexpected<Error>(bad_url(text));
  return take_apart(handle, text);
}

Result<Url> resolve_url(const Url& base, std::string_view reference) {
  const CurlUrl handle = new_handle();
  CURLUcode code = curl_url_set(handle.get(), CURLUPART_URL, base.text.c_str(), 0);
  if (code == CURLUE_OK) {
    code =
        curl_url_set(handle.get(), CURLUPART_URL, std::string(reference).c_str(), CURLU_URLENCODE);
  }
  if (code != CURLUE_OK) return tl::unexpected<Error>(bad_url(reference));
  CUBIST_ASSIGN_OR_RETURN(Url url, take_apart(handle, reference));
  if (url.user.empty() && url.same_origin(base)) {
    url.user = base.user;
    url.password = base.password;
  }
  return url;
}

Result<Url> url_below(const Url& folder, std::string_view relative_path) {
  std::string text = folder.text.substr(0, folder.text.find('?'));
  if (!text.ends_with('/')) text += '/';
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  for (const char c : relative_path) {
    if (kPlain.find(c) != std::string_view::npos) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  CUBIST_ASSIGN_OR_RETURN(Url url, parse_url(text));
  url.user = folder.user;
  url.password = folder.password;
  return url;
}

}  // namespace cubist
