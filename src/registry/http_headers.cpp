#include "registry/http_headers.h"

#include <time.h>

#include <algorithm>
#include <charconv>

namespace cubist {
namespace {

// No header that is used here is longer; what is longer is no use.
constexpr std::size_t kMaxValueBytes = 4096;
constexpr std::size_t kMaxChallenges = 8;

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

/// Digits only, all of the text: no sign, no space, no overflow.
std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "HTTP/1.1 206 Partial Content", "HTTP/2 206"
void read_status_line(std::string_view line, ResponseHeaders& headers) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos) return;
  const std::string_view rest = trim(line.substr(space));
  const auto status = number(rest.substr(0, 3));
  if (!status || (rest.size() > 3 && rest[3] != ' ')) return;
  headers.status = static_cast<int>(*status);
  headers.reason = std::string(trim(rest.substr(std::min<std::size_t>(3, rest.size()))));
}

template <class T>
void set_once(std::optional<T>& field, const std::optional<T>& value, bool& contradictory) {
  if (!value || (field && *field != *value)) {
    contradictory = true;
  } else {
    field = value;
  }
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view value) {
  value = trim(value);
  constexpr std::string_view kUnit = "bytes ";
  if (lower(value.substr(0, kUnit.size())) != kUnit) return std::nullopt;
  value = trim(value.substr(kUnit.size()));
  const std::size_t slash = value.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const std::string_view range = value.substr(0, slash);
  const std::string_view total = value.substr(slash + 1);

  ContentRange parsed;
  if (total != "*") {
    parsed.total = number(total);
    if (!parsed.total) return std::nullopt;
  }
  if (range == "*") {
    parsed.satisfied = false;
    return parsed.total ? std::optional(parsed) : std::nullopt;
  }
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = number(range.substr(0, dash));
  const auto last = number(range.substr(dash + 1));
  if (!first || !last || *first > *last || (parsed.total && *last >= *parsed.total)) {
    return std::nullopt;
  }
  parsed.first = *first;
  parsed.last = *last;
  return parsed;
}

std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, std::time_t now) {
  value = trim(value);
  // A year: more is no use to anybody and could overflow a clock.
  constexpr std::int64_t kMostSeconds = 366LL * 24 * 3600;
  if (const auto seconds = number(value)) {
    return std::chrono::seconds(
        static_cast<std::int64_t>(std::min<std::uint64_t>(*seconds, kMostSeconds)));
  }
  std::tm date{};
  const std::string text(value);
  const char* end = ::strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &date);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const std::time_t then = ::timegm(&date);
  const std::int64_t wait = static_cast<std::int64_t>(then) - static_cast<std::int64_t>(now);
  return std::chrono::seconds(std::clamp<std::int64_t>(wait, 0, kMostSeconds));
}

void ResponseHeaders::add_line(std::string_view line, std::time_t now) {
  if (line.starts_with("HTTP/")) {
    *this = ResponseHeaders();
    read_status_line(trim(line), *this);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = lower(trim(line.substr(0, colon)));
  const std::string_view value = trim(line.substr(colon + 1));
  // A control character would end up in a header of ours.
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (value.size() > kMaxValueBytes || std::any_of(value.begin(), value.end(), control)) return;
  if (name == "content-length") {
    set_once(content_length, number(value), contradictory);
  } else if (name == "content-range") {
    set_once(content_range, parse_content_range(value), contradictory);
  } else if (name == "retry-after") {
    retry_after = parse_retry_after(value, now);
  } else if (name == "content-type") {
    content_type = value;
  } else if (name == "content-encoding") {
    content_encoding = lower(value);
  } else if (name == "etag") {
    etag = value;
  } else if (name == "last-modified") {
    last_modified = value;
  } else if (name == "location") {
    location = value;
  } else if (name == "docker-content-digest") {
    content_digest = value;
  } else if (name == "www-authenticate" && challenges.size() < kMaxChallenges) {
    challenges.emplace_back(value);
  }
}

std::string ResponseHeaders::validator() const {
  // RFC 9110 13.1.5: a weak validator must not be used with If-Range.
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"') return etag;
  return last_modified;
}

bool ResponseHeaders::is_html() const {
  const std::string type = lower(content_type);
  return type.starts_with("text/html") || type.starts_with("application/xhtml");
}

}  // namespace cubist
