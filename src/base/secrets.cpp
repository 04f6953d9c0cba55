#include "base/secrets.h"

#include <algorithm>
#include <cctype>

namespace cubist {
namespace {

constexpr std::string_view kSlashes = "://";
constexpr std::string_view kBlot = "***@";
constexpr std::string_view kEndOfUrl = "'\" \t\r\n";

/// Whether "host:port/path@x" cannot be what it is: what follows the colon is no port, so it was
/// meant for a password with a '/' in it.
bool has_password_before_path(std::string_view authority) {
  const std::size_t colon = authority.find(':');
  if (colon == std::string_view::npos || authority.starts_with('[')) return false;
  const std::string_view port = authority.substr(colon + 1);
  return port.find_first_not_of("0123456789") != std::string_view::npos;
}

/// Of what follows "://": how much of it is user information, its '@' included.
std::size_t user_info_of(std::string_view rest) {
  // White space belongs in no URL, but a password may have some all the same.
  const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
  std::size_t sign = authority.rfind('@');
  if (sign == std::string_view::npos && has_password_before_path(authority)) sign = rest.rfind('@');
  return sign == std::string_view::npos ? 0 : sign + 1;
}

/// "user:password@host" that lacks its scheme.
std::size_t bare_user_info_of(std::string_view value) {
  const std::size_t sign = value.substr(0, value.find('/')).rfind('@');
  const bool has_password = sign != std::string_view::npos && value.find(':') < sign;
  return has_password ? sign + 1 : 0;
}

}  // namespace

bool begins_as_url(std::string_view text) {
  const std::string_view scheme = text.substr(0, text.find("://"));
  return !scheme.empty() && scheme.size() < text.size() &&
         std::all_of(scheme.begin(), scheme.end(),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-'; });
}

std::string without_credentials(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t slashes = text.find(kSlashes, at);
    if (slashes == std::string_view::npos) return out.append(text.substr(at));
    const std::size_t begin = slashes + kSlashes.size();
    const std::size_t end = std::min(text.find_first_of(kEndOfUrl, begin), text.size());
    const std::string_view url = text.substr(begin, end - begin);
    const std::size_t sign = url.substr(0, url.find_first_of("/?#")).rfind('@');
    const std::size_t secret = sign == std::string_view::npos ? 0 : sign + 1;
    const std::size_t query = std::min(url.find('?', secret), url.size());
    out.append(text.substr(at, begin - at)).append(secret == 0 ? "" : kBlot);
    out.append(url.substr(secret, query - secret)).append(query == url.size() ? "" : "?...");
    at = end;
  }
  return out;
}

std::string shown_value(std::string_view value) {
  const std::size_t slashes = value.find(kSlashes);
  const bool is_url = slashes != std::string_view::npos;
  const std::size_t begin = is_url ? slashes + kSlashes.size() : 0;
  const std::string_view rest = value.substr(begin);
  const std::size_t secret = is_url ? user_info_of(rest) : bare_user_info_of(value);
  std::string out(value.substr(0, begin));
  if (secret != 0) out += kBlot;
  const bool has_query = is_url || secret != 0;
  const std::size_t query = has_query ? rest.find_first_of("?#", secret) : std::string_view::npos;
  out += rest.substr(secret, query == std::string_view::npos ? query : query - secret);
  if (query != std::string_view::npos) out.append(1, rest[query]).append("...");
  return out;
}

std::string without_servers(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t slashes = text.find(kSlashes, at);
    const std::size_t blot = text.find(kBlot, at);
    if (slashes == blot) return out.append(text.substr(at));  // neither
    const std::size_t begin = slashes < blot ? slashes + kSlashes.size() : blot;
    out.append(text.substr(at, begin - at)).append("...");
    at = std::min(text.find_first_of(kEndOfUrl, begin), text.size());
  }
  return out;
}

}  // namespace cubist
