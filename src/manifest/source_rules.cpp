#include <algorithm>

#include "manifest/rules.h"
#include "manifest/text.h"
#include "manifest/validate.h"

namespace cubist {
namespace {

bool is_http_url(std::string_view location) {
  return location.starts_with("https://") || location.starts_with("http://");
}

Status check_url(std::string_view url, const std::string& pointer) {
  const std::string_view rest = url.substr(url.find("://") + 3);
  const std::string_view host = rest.substr(0, rest.find_first_of("/?#"));
  if (host.empty()) return invalid(pointer, "the URL {} names no host", shown(url));
  if (host.find('@') != std::string_view::npos) {
    return invalid(pointer, "a URL in a manifest must hold no user name or password; use ~/.netrc");
  }
  if (url.find(' ') != std::string_view::npos) {
    return invalid(pointer, "the URL {} holds a space; write %20", shown(url));
  }
  return {};
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// Letters, digits and those of `extra`, the first a letter or digit.
bool is_requirement_part(std::string_view part, std::string_view extra) {
  return !part.empty() && is_letter_or_digit(part[0]) &&
         std::all_of(part.begin(), part.end(), [&](char c) {
           return is_letter_or_digit(c) || extra.find(c) != std::string_view::npos;
         });
}

/// "name==version", both in the characters that Python's packaging rules allow.
bool is_requirement(std::string_view text) {
  const std::size_t at = text.find("==");
  return at != std::string_view::npos && is_requirement_part(text.substr(0, at), "._-") &&
         is_requirement_part(text.substr(at + 2), "._-+!");
}

Status check_location(const Source& source, const std::string& pointer) {
  const bool has_scheme = source.location.find("://") != std::string::npos;
  switch (source.kind) {
    case Source::Kind::kHttp:
      if (!is_http_url(source.location)) {
        return invalid(pointer, "{} is no http:// or https:// URL", shown(source.location));
      }
      return check_url(source.location, pointer);
    case Source::Kind::kZip:
      if (!has_scheme) return {};
      if (!is_http_url(source.location)) {
        return invalid(pointer, "{} is neither a file nor an http:// or https:// URL",
                       shown(source.location));
      }
      return check_url(source.location, pointer);
    case Source::Kind::kFolder:
      if (has_scheme) return invalid(pointer, "{} is no folder", shown(source.location));
      return {};
    case Source::Kind::kOci:
      return invalid(pointer, "a registry is named by users (--source), not by a manifest");
    case Source::Kind::kPip:
      if (!is_requirement(source.location)) {
        return invalid(pointer, "{} is no requirement of the form name==version",
                       shown(source.location));
      }
      return {};
  }
  return invalid(pointer, "unknown kind of source");
}

}  // namespace

Status check_source(const Source& source, const std::string& pointer) {
  const std::string location = pointer + "/location";
  if (source.location.empty()) return invalid(location, "a source needs a location");
  CUBIST_RETURN_IF_ERROR(check_text(source.location, kMaxLocationLength, location));
  CUBIST_RETURN_IF_ERROR(check_location(source, location));
  if (source.prefix.empty()) return {};
  if (source.prefix.back() != '/') {
    return invalid(pointer + "/prefix", "{} must end in '/'", shown(source.prefix));
  }
  if (source.prefix.size() > kMaxPathLength) {
    return invalid(pointer + "/prefix", "{} bytes; at most {} are allowed", source.prefix.size(),
                   kMaxPathLength);
  }
  const std::string_view folder(source.prefix.data(), source.prefix.size() - 1);
  if (const std::string_view problem = path_problem(folder); !problem.empty()) {
    return invalid(pointer + "/prefix", "{} {}", shown(source.prefix), problem);
  }
  return {};
}

}  // namespace cubist
