#include "oci/reference.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/secrets.h"
#include "document/json_text.h"

namespace cubist::oci {
namespace {

constexpr std::string_view kScheme = "oci://";
constexpr std::string_view kDigest = "sha256:";
constexpr std::size_t kMaxRepository = 255;
constexpr std::size_t kMaxTag = 128;
constexpr std::size_t kMaxHost = 253;
constexpr std::size_t kMaxText = 1024;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_lower(c) || is_digit(c) || (c >= 'A' && c <= 'Z') || c == '_'; }

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

/// [a-z0-9]+((.|_|__|-+)[a-z0-9]+)*
bool is_repository_part(std::string_view part) {
  if (part.empty()) return false;
  const auto alnum = [](char c) { return is_lower(c) || is_digit(c); };
  if (!alnum(part.front()) || !alnum(part.back())) return false;
  for (std::size_t i = 0; i < part.size();) {
    const std::size_t begin = i;
    while (i < part.size() && !alnum(part[i])) ++i;
    const std::string_view between = part.substr(begin, i - begin);
    const bool dashes = between.find_first_not_of('-') == std::string_view::npos;
    if (!dashes && between != "." && between != "_" && between != "__") return false;
    while (i < part.size() && alnum(part[i])) ++i;
  }
  return true;
}

bool is_repository(std::string_view text) {
  if (text.size() > kMaxRepository) return false;
  for (;;) {
    const std::size_t slash = text.find('/');
    if (!is_repository_part(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool is_tag(std::string_view text) {
  const auto fits = [](char c) { return is_word(c) || c == '.' || c == '-'; };
  return !text.empty() && text.size() <= kMaxTag && is_word(text.front()) &&
         std::all_of(text.begin(), text.end(), fits);
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65535 &&
         is_digit(text.front());
}

bool is_address_v6(std::string_view text) {
  // What follows a 0 would be lost on inet_pton.
  if (text.size() < 4 || text.back() != ']' || text.find('\0') != text.npos) return false;
  in6_addr address{};
  const std::string inside(text.substr(1, text.size() - 2));
  return ::inet_pton(AF_INET6, inside.c_str(), &address) == 1;
}

/// A name of the DNS or an IPv4 address: labels of letters, digits and inner dashes.
bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kMaxHost) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    const std::string_view label = text.substr(0, dot);
    const auto fits = [](char c) { return is_lower(c) || is_digit(c) || c == '-'; };
    if (label.empty() || label.front() == '-' || label.back() == '-' ||
        !std::all_of(label.begin(), label.end(), fits)) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_host(std::string_view text) {
  const bool v6 = text.starts_with('[');
  const std::size_t host_end = v6 ? text.find(']') : text.find(':');
  const std::size_t colon = v6 && host_end != std::string_view::npos ? host_end + 1 : host_end;
  const std::string_view name = text.substr(0, colon);
  if (v6 ? !is_address_v6(name) : !is_name(name)) return false;
  if (colon >= text.size()) return true;
  return text[colon] == ':' && colon + 1 < text.size() && is_port(text.substr(colon + 1));
}

tl::unexpected<Error> bad(std::string_view text, std::string_view why) {
  return fail(StatusCode::kInvalidArgument,
              "{} is not usable as a reference: {}; expected oci://host[:port]/repository:tag or "
              "...@sha256:<64 hexadecimal digits>",
              in_quotes(shown_value(text)), why);
}

}  // namespace

std::string Reference::wanted() const {
  return digest ? std::string(kDigest) + digest->hex() : tag;
}

std::string Reference::text() const {
  std::string out = fmt::format("{}{}/{}", kScheme, host, repository);
  if (!tag.empty()) out += ":" + tag;
  if (digest) out += fmt::format("@{}{}", kDigest, digest->hex());
  return out;
}

bool looks_like_reference(std::string_view text) { return text.starts_with(kScheme); }

Result<Reference> parse_reference(std::string_view text) {
  if (!looks_like_reference(text)) return bad(text, "it does not begin with oci://");
  if (text.size() > kMaxText) return bad(text, "it is too long");
  std::string_view rest = text.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const std::string_view host = rest.substr(0, slash);
  if (host.find('@') != std::string_view::npos && slash != std::string_view::npos) {
    return bad("oci://***@" + std::string(rest.substr(rest.find('@') + 1)),
               "credentials do not belong into it; they come from the credentials file "
               "(docs/oci.md)");
  }
  Reference found;
  found.host = lower(host);
  if (!is_host(found.host)) return bad(text, "its host is no host name or address");
  if (slash == std::string_view::npos) return bad(text, "it names no repository");
  rest.remove_prefix(slash + 1);
  if (const std::size_t at = rest.find('@'); at != std::string_view::npos) {
    const std::string_view digest = rest.substr(at + 1);
    if (digest.starts_with(kDigest)) {
      found.digest = Sha256Digest::parse(digest.substr(kDigest.size()));
    }
    if (!found.digest || found.digest->hex() != digest.substr(kDigest.size())) {
      return bad(text, "what follows '@' is no sha256 digest");
    }
    rest = rest.substr(0, at);
  }
  const std::size_t colon = rest.find(':');
  found.repository = std::string(rest.substr(0, colon));
  if (!is_repository(found.repository)) {
    return bad(text,
               "its repository is not made of lower-case letters, digits, '.', '_', '-' and "
               "'/' as registries want it");
  }
  if (colon != std::string_view::npos) {
    found.tag = std::string(rest.substr(colon + 1));
    if (!is_tag(found.tag)) {
      return bad(text, "its tag is not made of letters, digits, '.', '_' and '-'");
    }
  }
  if (found.tag.empty() && !found.digest) {
    return bad(text, "it has neither tag nor digest, and none is taken by default");
  }
  return found;
}

}  // namespace cubist::oci
