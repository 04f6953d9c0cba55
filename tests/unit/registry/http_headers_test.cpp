#include "registry/http_headers.h"

#include "support/catch.h"

using cubist::ContentRange;
using cubist::parse_content_range;
using cubist::parse_retry_after;
using cubist::ResponseHeaders;
using std::chrono::seconds;

namespace {

ResponseHeaders headers_of(std::initializer_list<const char*> lines) {
  ResponseHeaders headers;
  for (const char* line : lines) headers.add_line(line, 0);
  return headers;
}

}  // namespace

TEST_CASE("Content-Range is read exactly or not at all") {
  CHECK(parse_content_range("bytes 0-99/1234") == ContentRange{true, 0, 99, 1234});
  CHECK(parse_content_range(" Bytes 5-5/* ") == ContentRange{true, 5, 5, std::nullopt});
  CHECK(parse_content_range("bytes */1234") == ContentRange{false, 0, 0, 1234});
  for (const char* text :
       {"", "bytes", "bytes 0-99", "bytes 99-0/1234", "bytes 0-99/99", "bytes -5-9/10",
        "bytes 0-9/10 x", "bytes 0x0-9/10", "bytes */*", "items 0-9/10", "bytes 0-/10",
        "bytes 0-18446744073709551616/*", "bytes +1-2/3", "bytes 0-9/-10"}) {
    CHECK_FALSE(parse_content_range(text));
  }
}

TEST_CASE("Retry-After is seconds or a date") {
  CHECK(parse_retry_after("120", 0) == seconds(120));
  CHECK(parse_retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 40) == seconds(60));
  CHECK(parse_retry_after("Thu, 01 Jan 1970 00:01:40 GMT", 4'000) == seconds(0));
  CHECK(parse_retry_after("18446744073709551615", 0).value() < seconds(400L * 24 * 3600));
  for (const char* text : {"", "-5", "1.5", "soon", "Thu, 01 Jan 1970 00:01:40 GMT and more"}) {
    CHECK_FALSE(parse_retry_after(text, 0));
  }
}

TEST_CASE("a header is gathered line by line, whatever the case of its names") {
  const auto headers = headers_of({"HTTP/1.1 206 Partial Content\r\n", "CONTENT-length: 100\r\n",
                                   "ETag: \"abc\"\r\n", "content-range: bytes 0-99/1000\r\n",
                                   "X-Other: 1\r\n", "nonsense\r\n", "\r\n"});
  CHECK(headers.status == 206);
  CHECK(headers.reason == "Partial Content");
  CHECK(headers.content_length == 100u);
  CHECK(headers.content_range == ContentRange{true, 0, 99, 1000});
  CHECK(headers.validator() == "\"abc\"");
  CHECK_FALSE(headers.contradictory);
}

TEST_CASE("an interim answer leaves nothing in the header of the final one") {
  const auto headers =
      headers_of({"HTTP/1.1 100 Continue", "ETag: \"old\"", "", "HTTP/2 200", "x: y"});
  CHECK(headers.status == 200);
  CHECK(headers.reason.empty());
  CHECK(headers.etag.empty());
}

TEST_CASE("a weak ETag is no validator for ranges; Last-Modified stands in") {
  auto headers = headers_of({"HTTP/1.1 200 OK", "ETag: W/\"abc\"", "Last-Modified: yesterday"});
  CHECK(headers.validator() == "yesterday");
  CHECK(headers_of({"HTTP/1.1 200 OK", "ETag: abc"}).validator().empty());
}

TEST_CASE("lengths that contradict each other or make no sense mark the header") {
  CHECK(headers_of({"HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 6"}).contradictory);
  CHECK_FALSE(
      headers_of({"HTTP/1.1 200 OK", "Content-Length: 5", "Content-Length: 5"}).contradictory);
  CHECK(headers_of({"HTTP/1.1 200 OK", "Content-Length: -5"}).contradictory);
  CHECK(headers_of({"HTTP/1.1 206 P", "Content-Range: bytes banana"}).contradictory);
}

TEST_CASE("HTML is told from its type, and status lines that are none are passed over") {
  CHECK(headers_of({"HTTP/1.1 200 OK", "Content-Type: Text/HTML; charset=utf-8"}).is_html());
  CHECK_FALSE(headers_of({"HTTP/1.1 200 OK", "Content-Type: application/zip"}).is_html());
  CHECK(headers_of({"HTTP/1.1 2000 OK"}).status == 0);
  CHECK(headers_of({"HTTP/1.1"}).status == 0);
  CHECK(headers_of({"HTTP/1.1 abc"}).status == 0);
}
