#include "registry/http_transfer.h"

#include "support/catch.h"

using cubist::HttpProfile;
using cubist::HttpRequest;
using cubist::HttpTransfer;
using cubist::StatusCode;
using Step = HttpTransfer::Step;

namespace {

HttpRequest request_for(const char* url = "https://host.example/file", std::uint64_t max = 1'000) {
  HttpRequest request;
  request.url = cubist::parse_url(url).value();
  request.profile = std::make_shared<const HttpProfile>();
  request.max_bytes = max;
  return request;
}

HttpRequest part(std::uint64_t offset, std::uint64_t length) {
  HttpRequest request = request_for();
  request.range = HttpRequest::Range{offset, length};
  return request;
}

/// What one answer looks like; false from the transfer ends it as a client would.
HttpTransfer::Next answer(HttpTransfer& transfer, std::initializer_list<const char*> header,
                          std::size_t body_bytes = 0,
                          HttpTransfer::End end = {true, false, false, "", ""}) {
  bool go_on = true;
  for (const char* line : header) go_on = go_on && transfer.take_header(line, 0);
  const std::vector<std::uint8_t> body(body_bytes, 'x');
  if (go_on && body_bytes != 0) go_on = transfer.take_body(body);
  if (!go_on) end = {false, false, false, "aborted", ""};
  return transfer.finish(end, 0.5);
}

const HttpTransfer::End kBroken{false, true, false, "connection reset", "try again"};

std::string failure(HttpTransfer& transfer, StatusCode code) {
  const auto result = transfer.take_result();
  REQUIRE_FALSE(result);
  CHECK(result.error().error.code() == code);
  return result.error().error.message();
}

}  // namespace

TEST_CASE("a whole file comes in one answer") {
  HttpTransfer transfer(request_for());
  CHECK(transfer.wire().range.empty());
  CHECK(answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 100", "ETag: \"a\""}, 100).step ==
        Step::kDone);
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->body.size() == 100);
  CHECK(result->validator == "\"a\"");
  CHECK(result->total_size == 100u);
}

TEST_CASE("a broken download goes on where it stopped, with the validator") {
  HttpTransfer transfer(request_for());
  const auto next =
      answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 100", "ETag: \"a\""}, 40, kBroken);
  CHECK(next.step == Step::kRetry);
  CHECK(next.delay.count() > 0);
  CHECK(transfer.wire().range == "40-");
  CHECK(transfer.wire().if_range == "\"a\"");
  answer(transfer, {"HTTP/1.1 206 Partial", "Content-Range: bytes 40-99/100", "ETag: \"a\""}, 60);
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->body.size() == 100);
  CHECK(result->resumed);
}

TEST_CASE(
    "a file that changed in between is taken from the start, whether the server says 200 or 206") {
  HttpTransfer transfer(request_for());
  answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 100", "ETag: \"a\""}, 40, kBroken);
  SECTION("200") { answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 90", "ETag: \"b\""}, 90); }
  SECTION("206 with another ETag") {
    CHECK(answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 40-89/90", "ETag: \"b\""}, 50)
              .step == Step::kRetry);
    CHECK(transfer.wire().range.empty());
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 90", "ETag: \"b\""}, 90);
  }
  SECTION("416") {
    CHECK(answer(transfer, {"HTTP/1.1 416 No", "Content-Range: bytes */30"}).step == Step::kRetry);
    CHECK(transfer.wire().range.empty());
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 90"}, 90);
  }
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->body.size() == 90);
  CHECK_FALSE(result->resumed);
}

TEST_CASE("a part is exactly the bytes that were asked for, or an error") {
  HttpTransfer transfer(part(10, 20));
  CHECK(transfer.wire().range == "10-29");
  SECTION("right") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 10-29/1000"}, 20);
    const auto result = transfer.take_result();
    REQUIRE(result);
    CHECK(result->body.size() == 20);
    CHECK(result->total_size == 1000u);
  }
  SECTION("the server ignores ranges: not a byte of the body is taken") {
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 458000000"}, 1);
    CHECK(transfer.received_bytes() == 0);
    CHECK_THAT(failure(transfer, StatusCode::kNetwork),
               Catch::Contains("ignores Range") && Catch::Contains("458000000 bytes"));
  }
  SECTION("another place") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 11-30/1000"}, 20);
    failure(transfer, StatusCode::kIntegrity);
  }
  SECTION("the file is shorter") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 10-19/20"}, 10);
    failure(transfer, StatusCode::kIntegrity);
  }
  SECTION("no Content-Range") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Length: 20"}, 20);
    failure(transfer, StatusCode::kNetwork);
  }
  SECTION("two of them") {
    answer(transfer,
           {"HTTP/1.1 206 P", "Content-Range: bytes 10-29/1000", "Content-Range: bytes 10-29/1001"},
           20);
    failure(transfer, StatusCode::kNetwork);
  }
  SECTION("more than announced") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 10-29/1000"}, 21);
    failure(transfer, StatusCode::kIntegrity);
  }
  SECTION("Content-Length says something else") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 10-29/1000", "Content-Length: 19"},
           19);
    failure(transfer, StatusCode::kNetwork);
  }
  SECTION("beyond the end") {
    answer(transfer, {"HTTP/1.1 416 No", "Content-Range: bytes */5"});
    CHECK_THAT(failure(transfer, StatusCode::kNetwork), Catch::Contains("shorter"));
  }
}

TEST_CASE("the last bytes of a file tell its size, and a broken tail goes on as a known range") {
  HttpRequest request = request_for();
  request.last_bytes = 50;
  HttpTransfer transfer(request);
  CHECK(transfer.wire().range == "-50");
  SECTION("the file is longer") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 950-999/1000"}, 20, kBroken);
    CHECK(transfer.wire().range == "970-999");
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 970-999/1000"}, 30);
    CHECK(transfer.take_result()->body.size() == 50);
  }
  SECTION("the file is shorter") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 0-29/30"}, 30);
    CHECK(transfer.take_result()->total_size == 30u);
  }
  SECTION("the size is not told") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 950-999/*"}, 50);
    failure(transfer, StatusCode::kNetwork);
  }
}

TEST_CASE("ranges of another version are reported as such, not mixed") {
  HttpRequest request = part(10, 20);
  request.if_range = "\"a\"";
  request.total_size = 1000;
  HttpTransfer transfer(request);
  CHECK(transfer.wire().if_range == "\"a\"");
  SECTION("a whole file in answer to If-Range") {
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 1000", "ETag: \"b\""}, 1000);
  }
  SECTION("a server that ignores If-Range but shows the ETag") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 10-29/1000", "ETag: \"b\""}, 20);
  }
  SECTION("another size") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 10-29/1001"}, 20);
  }
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->changed);
  CHECK(result->body.empty());
}

TEST_CASE("a body is not taken past what is expected, and a page is not taken for a file") {
  HttpTransfer transfer(request_for("https://host.example/file", 100));
  SECTION("announced too long") {
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 101"}, 50);
    CHECK_THAT(failure(transfer, StatusCode::kIntegrity), Catch::Contains("announces 101 bytes"));
  }
  SECTION("too long without announcement") {
    answer(transfer, {"HTTP/1.1 200 OK"}, 101);
    failure(transfer, StatusCode::kIntegrity);
  }
  SECTION("a page") {
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Type: text/html"}, 10);
    CHECK_THAT(failure(transfer, StatusCode::kIntegrity), Catch::Contains("HTML page"));
  }
  SECTION("packed without being asked") {
    answer(transfer, {"HTTP/1.1 200 OK", "Content-Encoding: gzip"}, 10);
    failure(transfer, StatusCode::kNetwork);
  }
  SECTION("a part though the whole was asked for") {
    answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 0-9/10"}, 10);
    failure(transfer, StatusCode::kNetwork);
  }
}

TEST_CASE("403 and 404 end at once, 503 is tried four times, each says what to do") {
  HttpTransfer transfer(request_for("https://me:pw@host.example/file?sig=secret"));
  SECTION("403") {
    CHECK(answer(transfer, {"HTTP/1.1 403 Forbidden"}, 9).step == Step::kDone);
    const std::string text = failure(transfer, StatusCode::kNetwork);
    CHECK_THAT(text, Catch::Contains("GET https://host.example/file?...: 403 Forbidden; "));
    CHECK_THAT(text, !Catch::Contains("pw") && !Catch::Contains("secret"));
  }
  SECTION("404") {
    CHECK(answer(transfer, {"HTTP/1.1 404 Not Found"}).step == Step::kDone);
    CHECK(transfer.take_result().error().status == 404);
  }
  SECTION("503") {
    for (int i = 0; i < 3; ++i) {
      CHECK(answer(transfer, {"HTTP/1.1 503 Busy"}, 5).step == Step::kRetry);
    }
    CHECK(answer(transfer, {"HTTP/1.1 503 Busy"}, 5).step == Step::kDone);
    CHECK_THAT(failure(transfer, StatusCode::kNetwork),
               Catch::Contains("503 Busy") && Catch::Contains("(4 tries)"));
  }
  SECTION("429 with a pause") {
    const auto next = answer(transfer, {"HTTP/1.1 429 Slow", "Retry-After: 7"});
    CHECK(next.step == Step::kRetry);
    CHECK(next.delay == std::chrono::seconds(7));
  }
  SECTION("429 with a pause nobody waits for") {
    CHECK(answer(transfer, {"HTTP/1.1 429 Slow", "Retry-After: 86400"}).step == Step::kDone);
    CHECK_THAT(failure(transfer, StatusCode::kNetwork), Catch::Contains("wait 86400 s"));
  }
}

TEST_CASE("redirects go on with the same scheme or to https, and leave credentials at home") {
  HttpTransfer transfer(request_for("http://me:pw@host.example/file"));
  CHECK(transfer.wire().credentials);
  CHECK(answer(transfer, {"HTTP/1.1 302 Found", "Location: /other"}, 3).step == Step::kRedirect);
  CHECK(transfer.wire().credentials);
  CHECK(transfer.wire().url.text == "http://host.example/other");
  answer(transfer, {"HTTP/1.1 307 T", "Location: https://cdn.example/x"});
  CHECK(transfer.wire().url.text == "https://cdn.example/x");
  CHECK_FALSE(transfer.wire().credentials);
  SECTION("back to plain http") {
    CHECK(answer(transfer, {"HTTP/1.1 302 F", "Location: http://cdn.example/x"}).step ==
          Step::kDone);
    CHECK_THAT(failure(transfer, StatusCode::kNetwork), Catch::Contains("plain http"));
  }
  SECTION("to a file") {
    answer(transfer, {"HTTP/1.1 302 F", "Location: file:///etc/passwd"});
    failure(transfer, StatusCode::kNetwork);
  }
  SECTION("to credentials of somebody else: none are sent") {
    answer(transfer, {"HTTP/1.1 302 F", "Location: https://a:b@cdn.example/x"});
    CHECK(transfer.wire().url.text == "https://cdn.example/x");
    CHECK_FALSE(transfer.wire().credentials);
  }
  SECTION("without end") {
    Step step = Step::kRedirect;
    for (int i = 0; i < 20 && step == Step::kRedirect; ++i) {
      step = answer(transfer, {"HTTP/1.1 302 F", "Location: /again"}).step;
    }
    CHECK(step == Step::kDone);
    CHECK_THAT(failure(transfer, StatusCode::kNetwork), Catch::Contains("redirects"));
  }
  SECTION("a new try begins at the first address again") {
    CHECK(answer(transfer, {}, 0, kBroken).step == Step::kRetry);
    CHECK(transfer.wire().url.text == "http://host.example/file");
  }
}
