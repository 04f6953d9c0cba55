#include "registry/http_transfer.h"

#include "support/catch.h"

using cubist::Error;
using cubist::HttpMethod;
using cubist::HttpProfile;
using cubist::HttpRequest;
using cubist::HttpSink;
using cubist::HttpTransfer;
using cubist::Status;
using cubist::StatusCode;
using Step = HttpTransfer::Step;

namespace {

struct Sink : HttpSink {
  Status write(std::span<const std::uint8_t> part) override {
    if (full) return tl::unexpected<Error>(Error(StatusCode::kIo, "no space left"));
    bytes += part.size();
    return {};
  }
  Status restart() override {
    ++restarts;
    bytes = 0;
    return {};
  }
  std::size_t bytes = 0;
  int restarts = 0;
  bool full = false;
};

HttpRequest request_for(HttpMethod method) {
  HttpRequest request;
  request.url = cubist::parse_url("https://host.example/v2/x").value();
  request.method = method;
  request.profile = std::make_shared<const HttpProfile>();
  request.max_bytes = 1000;
  return request;
}

HttpTransfer::Next answer(HttpTransfer& transfer, std::initializer_list<const char*> header,
                          std::size_t body_bytes = 0, bool complete = true) {
  bool go_on = true;
  for (const char* line : header) go_on = go_on && transfer.take_header(line, 0);
  const std::vector<std::uint8_t> body(body_bytes, 'x');
  if (go_on && body_bytes != 0) go_on = transfer.take_body(body);
  return transfer.finish({complete && go_on, !complete, false, "reset", "try again"}, 0.5);
}

std::string failure(HttpTransfer& transfer, StatusCode code) {
  const auto result = transfer.take_result();
  REQUIRE_FALSE(result);
  CHECK(result.error().error.code() == code);
  return result.error().error.message();
}

}  // namespace

TEST_CASE("an upload's answer has its status, place and digest") {
  HttpTransfer transfer(request_for(HttpMethod::kPut));
  CHECK(answer(transfer,
               {"HTTP/1.1 201 Created", "Location: /v2/x/blobs/1",
                "Docker-Content-Digest: sha256:00", "Content-Length: 2"},
               2)
            .step == Step::kDone);
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->status == 201);
  CHECK(result->location == "/v2/x/blobs/1");
  CHECK(result->content_digest == "sha256:00");
  CHECK(result->body.size() == 2);
}

TEST_CASE("a HEAD says how long the body would be, and has none") {
  HttpTransfer transfer(request_for(HttpMethod::kHead));
  CHECK(answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 5000000"}).step == Step::kDone);
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->content_length == 5'000'000u);
}

TEST_CASE("a refusal is an answer where any status will do, with every challenge") {
  HttpRequest request = request_for(HttpMethod::kGet);
  request.any_status = true;
  HttpTransfer transfer(request);
  CHECK(answer(transfer,
               {"HTTP/1.1 401 Unauthorized", "WWW-Authenticate: Basic realm=x",
                "www-authenticate: Bearer realm=y"},
               30)
            .step == Step::kDone);
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->status == 401);
  CHECK(result->challenges == std::vector<std::string>{"Basic realm=x", "Bearer realm=y"});
  CHECK(result->body.size() == 30);
}

TEST_CASE("a refusal's body is kept within reason, and counts though it was cut short") {
  HttpRequest request = request_for(HttpMethod::kPatch);
  request.any_status = true;
  HttpTransfer transfer(request);
  transfer.take_header("HTTP/1.1 413 Too Large", 0);
  CHECK(transfer.take_body(std::vector<std::uint8_t>(64 * 1024, 'x')));
  CHECK_FALSE(transfer.take_body(std::vector<std::uint8_t>(1, 'x')));
  CHECK(transfer.finish({false, true, false, "reset", ""}, 0.5).step == Step::kDone);
  CHECK(transfer.take_result()->status == 413);
}

TEST_CASE("overload is tried again though any status will do") {
  HttpRequest request = request_for(HttpMethod::kPost);
  request.any_status = true;
  HttpTransfer transfer(request);
  CHECK(answer(transfer, {"HTTP/1.1 503 Busy"}).step == Step::kRetry);
  CHECK(answer(transfer, {"HTTP/1.1 202 Accepted"}).step == Step::kDone);
  CHECK(transfer.take_result()->status == 202);
}

TEST_CASE("without that, a refusal is an error that names the method") {
  HttpTransfer transfer(request_for(HttpMethod::kPut));
  CHECK(answer(transfer, {"HTTP/1.1 404 Not Found"}).step == Step::kDone);
  CHECK_THAT(failure(transfer, StatusCode::kNetwork),
             Catch::StartsWith("PUT https://host.example"));
}

TEST_CASE("what sends a body follows only the redirects that send it again") {
  for (const char* status : {"HTTP/1.1 301 M", "HTTP/1.1 302 F", "HTTP/1.1 303 S"}) {
    HttpTransfer transfer(request_for(HttpMethod::kPut));
    CHECK(answer(transfer, {status, "Location: /other"}).step == Step::kDone);
    CHECK_THAT(failure(transfer, StatusCode::kNetwork), Catch::Contains("not followed"));
  }
  HttpTransfer transfer(request_for(HttpMethod::kPut));
  CHECK(answer(transfer, {"HTTP/1.1 307 T", "Location: https://elsewhere.example/"}).step ==
        Step::kRedirect);
  CHECK_FALSE(transfer.wire().credentials);
}

TEST_CASE("a body goes into the sink, is gone on with after a break, and is not kept in memory") {
  HttpRequest request = request_for(HttpMethod::kGet);
  const auto sink = std::make_shared<Sink>();
  request.sink = sink;
  HttpTransfer transfer(request);
  CHECK(
      answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 100", "ETag: \"a\""}, 40, false).step ==
      Step::kRetry);
  CHECK(transfer.wire().range == "40-");
  CHECK(answer(transfer, {"HTTP/1.1 206 P", "Content-Range: bytes 40-99/100", "ETag: \"a\""}, 60)
            .step == Step::kDone);
  const auto result = transfer.take_result();
  REQUIRE(result);
  CHECK(result->body.empty());
  CHECK(sink->bytes == 100);
  CHECK(sink->restarts == 0);
}

TEST_CASE("a sink is told when the server begins anew, and its failure ends the transfer") {
  HttpRequest request = request_for(HttpMethod::kGet);
  const auto sink = std::make_shared<Sink>();
  request.sink = sink;
  HttpTransfer transfer(request);
  CHECK(answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 100"}, 40, false).step ==
        Step::kRetry);
  CHECK(answer(transfer, {"HTTP/1.1 200 OK", "Content-Length: 100"}, 100).step == Step::kDone);
  CHECK(transfer.take_result());
  CHECK(sink->restarts == 1);
  CHECK(sink->bytes == 100);

  sink->full = true;
  HttpTransfer refused(request);
  CHECK(answer(refused, {"HTTP/1.1 200 OK", "Content-Length: 100"}, 100).step == Step::kDone);
  CHECK_THAT(failure(refused, StatusCode::kIo), Catch::Contains("no space left"));
}

TEST_CASE("the body of a refusal does not get into the sink") {
  HttpRequest request = request_for(HttpMethod::kGet);
  const auto sink = std::make_shared<Sink>();
  request.sink = sink;
  request.any_status = true;
  HttpTransfer transfer(request);
  CHECK(answer(transfer, {"HTTP/1.1 401 Unauthorized"}, 50).step == Step::kDone);
  CHECK(transfer.take_result()->body.size() == 50);
  CHECK(sink->bytes == 0);
}

TEST_CASE("this machine is known by name and address, and by nothing that looks like them") {
  const auto local = [](const char* url) { return cubist::parse_url(url).value().is_loopback(); };
  CHECK(local("http://localhost:5000/"));
  CHECK(local("http://127.0.0.1/"));
  CHECK(local("http://127.8.9.10/"));
  CHECK(local("http://[::1]:5000/"));
  CHECK_FALSE(local("http://127.0.0.1.example.com/"));
  CHECK_FALSE(local("http://128.0.0.1/"));
  CHECK_FALSE(local("http://localhost.example.com/"));
}
