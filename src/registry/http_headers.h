#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cubist {

/// "bytes 0-99/1234", "bytes 0-99/*" or, with status 416, "bytes */1234".
struct ContentRange {
  bool satisfied = true;  ///< first and last are set
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> total;

  bool operator==(const ContentRange&) const = default;
};
std::optional<ContentRange> parse_content_range(std::string_view value);

/// Seconds, or a date of RFC 9110 5.6.7 seen from `now`; a date that has passed is zero.
std::optional<std::chrono::seconds> parse_retry_after(std::string_view value, std::time_t now);

/// What is used of a response's header, line by line as it comes in. Lines that make no sense are
/// passed over; a value that contradicts an earlier one of its kind marks the header as unusable.
struct ResponseHeaders {
  int status = 0;
  std::string reason;
  std::optional<std::uint64_t> content_length;
  std::optional<ContentRange> content_range;
  std::optional<std::chrono::seconds> retry_after;
  std::string content_type;
  std::string content_encoding;
  std::string etag;
  std::string last_modified;
  std::string location;
  std::string content_digest;           ///< Docker-Content-Digest
  std::vector<std::string> challenges;  ///< WWW-Authenticate
  bool contradictory = false;

  /// A status line begins a new header (an interim 1xx answer, a proxy's answer to CONNECT).
  void add_line(std::string_view line, std::time_t now);

  /// What If-Range may carry: a strong ETag, else Last-Modified, else nothing.
  std::string validator() const;
  bool is_html() const;
};

}  // namespace cubist
