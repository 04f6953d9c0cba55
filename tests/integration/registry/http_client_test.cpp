#include "registry/http_client.h"

#include <sys/resource.h>

#include <chrono>
#include <fstream>
#include <new>
#include <thread>

#include "support/catch.h"
#include "support/scratch.h"
#include "support/server.h"
#include "support/synthetic.h"

using cubist::HttpClient;
using cubist::HttpError;
using cubist::HttpProfile;
using cubist::HttpRequest;
using cubist::HttpResult;
using cubist::StatusCode;
using cubist::test::MischiefServer;
using cubist::test::Nginx;
using cubist::test::Scratch;
using cubist::test::synthetic_bytes;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kFileBytes = 200'000;

struct Fixture {
  Scratch scratch;
  std::vector<std::uint8_t> bytes = synthetic_bytes(1, kFileBytes);
  MischiefServer server{scratch.path()};

  Fixture() { write("file", bytes); }
  void write(const std::string& name, const std::vector<std::uint8_t>& data) {
    std::ofstream(scratch / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
  }
};

std::shared_ptr<const HttpProfile> impatient() {
  auto profile = std::make_shared<HttpProfile>();
  profile->connect_timeout = milliseconds(2'000);
  profile->stall_timeout = milliseconds(400);
  profile->retry = {3, milliseconds(10), milliseconds(50), std::chrono::seconds(5)};
  return profile;
}

HttpRequest request(const std::string& url) {
  HttpRequest made;
  made.url = cubist::parse_url(url).value();
  made.profile = impatient();
  made.max_bytes = kFileBytes;
  return made;
}

HttpResult get(const std::string& url) { return HttpClient().get(request(url)); }

std::string failure(const HttpResult& result, StatusCode code) {
  REQUIRE_FALSE(result);
  CHECK(result.error().error.code() == code);
  return result.error().error.message();
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

TEST_CASE_METHOD(Fixture,
                 "what a server does wrong once is made good, with the bytes as they are") {
  const char* behaviour = GENERATE("ok", "no-etag", "truncate-once", "stall-once", "500-then-ok",
                                   "408-then-ok", "429-then-ok", "pace");
  const auto result = get(server.url(behaviour) + "/file");
  INFO(behaviour << (result ? "" : result.error().error.message()));
  REQUIRE(result);
  CHECK(result->body == bytes);
}

TEST_CASE_METHOD(Fixture, "a truncated download transfers only the rest the second time") {
  HttpClient client;
  REQUIRE(client.get(request(server.url("truncate-once") + "/file")));
  CHECK(client.counters().received_bytes == kFileBytes);
  CHECK(client.counters().requests == 2);
  CHECK(client.counters().retries == 1);
  CHECK_THAT(server.log(),
             Catch::Contains("\"range\": \"bytes=100000-\", \"if_range\": \"\\\"v1\\\"\""));
}

TEST_CASE_METHOD(Fixture, "a file that changes while it is resumed is taken whole, never mixed") {
  const auto result = get(server.url("truncate-once-then-other") + "/file");
  REQUIRE(result);
  auto other = bytes;
  for (auto& byte : other) byte = static_cast<std::uint8_t>(~byte);
  CHECK(result->body == other);
}

TEST_CASE_METHOD(Fixture, "what a server does wrong for good is a named error after the tries") {
  struct Row {
    const char* behaviour;
    StatusCode code;
    const char* phrase;
    std::size_t requests;
  };
  const auto row = GENERATE(values<Row>({
      {"truncate", StatusCode::kNetwork, "(3 tries)", 3},
      {"bad-chunks", StatusCode::kNetwork, "(3 tries)", 3},
      {"stall", StatusCode::kNetwork, "stalled: nothing more came for 0.4 s", 3},
      {"silent", StatusCode::kNetwork, "stalled", 3},
      {"close", StatusCode::kNetwork, "Empty reply", 3},
      {"500", StatusCode::kNetwork, "500 Internal Server Error", 3},
      {"429-for-long", StatusCode::kNetwork, "wait 86400 s", 1},
      {"403", StatusCode::kNetwork, "403 Forbidden; the server does not let you", 1},
      {"404", StatusCode::kNetwork, "404 Not Found; it is not there", 1},
      {"html", StatusCode::kIntegrity, "HTML page", 1},
      {"gzip", StatusCode::kNetwork, "packed", 1},
      {"long", StatusCode::kIntegrity, "announces 200100 bytes", 1},
      {"long-no-length", StatusCode::kIntegrity, "more than the 200000 bytes", 1},
      {"part-unasked", StatusCode::kNetwork, "206", 1},
      {"loop", StatusCode::kNetwork, "redirects", 11},
  }));
  const std::string url = server.url(row.behaviour) + "/file";
  const std::string text = failure(get(url), row.code);
  INFO(row.behaviour);
  CHECK_THAT(text, Catch::Contains(row.phrase));
  CHECK_THAT(text, Catch::Contains(url));
  CHECK(server.count_requests() == row.requests);
}

TEST_CASE_METHOD(Fixture, "ranges that a server does not serve as asked are refused unread") {
  struct Row {
    const char* behaviour;
    StatusCode code;
    const char* phrase;
  };
  const auto row = GENERATE(values<Row>({
      {"no-range", StatusCode::kNetwork, "ignores Range requests and would send 200000 bytes"},
      {"wrong-range", StatusCode::kIntegrity, "sent bytes 101-200"},
      {"no-content-range", StatusCode::kNetwork, "Content-Range"},
      {"bad-content-range", StatusCode::kNetwork, "Content-Range"},
  }));
  HttpRequest part = request(server.url(row.behaviour) + "/file");
  part.range = HttpRequest::Range{100, 100};
  HttpClient client;
  CHECK_THAT(failure(client.get(part), row.code), Catch::Contains(row.phrase));
}

TEST_CASE_METHOD(Fixture, "a refused whole file costs no more than what was on its way") {
  const std::size_t large = 64 << 20;
  write("large", std::vector<std::uint8_t>(large));
  HttpRequest part = request(server.url("no-range") + "/large");
  part.range = HttpRequest::Range{100, 100};
  HttpClient client;
  failure(client.get(part), StatusCode::kNetwork);
  CHECK(client.counters().received_bytes < (1U << 20));
}

TEST_CASE("nginx serves whole files, parts and tails, and its refusals are named") {
  if (!Nginx::installed()) {
    WARN("nginx is not installed: not tested");
    return;
  }
  const Scratch scratch;
  const auto bytes = synthetic_bytes(2, kFileBytes);
  std::ofstream(scratch / "file", std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(kFileBytes));
  const Nginx nginx(scratch.path(),
                    "location = /forbidden { return 403; }\n"
                    "location = /moved { return 301 /file; }\n"
                    "location = /cut { max_ranges 0; alias " +
                        (scratch / "file") + "; }");
  HttpClient client;
  CHECK(client.get(request(nginx.url() + "/file"))->body == bytes);
  CHECK(client.get(request(nginx.url() + "/moved"))->body == bytes);

  HttpRequest part = request(nginx.url() + "/file");
  part.range = HttpRequest::Range{150'000, 1'000};
  const auto middle = client.get(part);
  REQUIRE(middle);
  CHECK(middle->body ==
        std::vector<std::uint8_t>(bytes.begin() + 150'000, bytes.begin() + 151'000));
  CHECK(middle->total_size == kFileBytes);
  CHECK_FALSE(middle->validator.empty());
  part.if_range = middle->validator;
  CHECK_FALSE(client.get(part)->changed);
  part.if_range = "\"something else\"";
  CHECK(client.get(part)->changed);

  HttpRequest tail = request(nginx.url() + "/file");
  tail.last_bytes = 1'000;
  CHECK(client.get(tail)->body == std::vector<std::uint8_t>(bytes.end() - 1'000, bytes.end()));

  CHECK_THAT(failure(client.get(request(nginx.url() + "/forbidden")), StatusCode::kNetwork),
             Catch::Contains("403"));
  CHECK_THAT(failure(client.get(request(nginx.url() + "/none")), StatusCode::kNetwork),
             Catch::Contains("404"));
  HttpRequest cut = request(nginx.url() + "/cut");
  cut.range = HttpRequest::Range{0, 10};
  CHECK_THAT(failure(client.get(cut), StatusCode::kNetwork), Catch::Contains("ignores Range"));
}

TEST_CASE("a server that is not there is named with what to do") {
  const std::string url = "http://127.0.0.1:" + std::to_string(cubist::test::free_port()) + "/x";
  const auto result = get(url);
  CHECK_THAT(failure(result, StatusCode::kNetwork),
             Catch::Contains(url) && Catch::Contains("proxy") && Catch::Contains("(3 tries)"));
  CHECK(result.error().unreachable);
}

TEST_CASE_METHOD(Fixture, "credentials go to the first host only, from the URL, netrc or a token") {
  const std::string port = std::to_string(server.port());
  const std::string elsewhere = "http://localhost:" + port + "/ok/file";
  std::ofstream(scratch / "netrc") << "machine 127.0.0.1 login net password rc\n"
                                   << "machine localhost login other password one\n";
  HttpRequest asked = request(server.url("redirect") + "/?to=" + elsewhere);
  std::string expected = "Basic ";
  SECTION("in the URL") {
    asked.url.user = "u";
    asked.url.password = "p";
  }
  SECTION("netrc") {
    auto profile = std::make_shared<HttpProfile>(*asked.profile);
    profile->netrc_file = scratch / "netrc";
    asked.profile = profile;
  }
  SECTION("a token") {
    auto profile = std::make_shared<HttpProfile>(*asked.profile);
    profile->bearer_tokens = {{"127.0.0.1", "t0ken"}, {"localhost", "t0ken"}};
    asked.profile = profile;
    expected = "Bearer t0ken";
  }
  REQUIRE(HttpClient().get(asked));
  const std::string log = server.log();
  CHECK(count(log, "\"authorization\": \"" + expected) == 1);
  CHECK(count(log, "\"authorization\": \"\"") == 1);
}

TEST_CASE_METHOD(Fixture, "many requests run at once, no more than allowed, and all come back") {
  HttpClient client(8);
  int done = 0;
  for (int i = 0; i < 40; ++i) {
    client.start(request(server.url("pace") + "/file?seconds=0.2&n=" + std::to_string(i)),
                 [&](const HttpResult& result) {
                   REQUIRE(result);
                   CHECK(result->body == bytes);
                   ++done;
                 });
  }
  const auto begin = std::chrono::steady_clock::now();
  while (client.pending() != 0) client.step(milliseconds(100));
  const auto took = std::chrono::steady_clock::now() - begin;
  CHECK(done == 40);
  CHECK(took > milliseconds(900));    // 40 of 0.2 s, 8 at once
  CHECK(took < milliseconds(6'000));  // one after the other: 8 s
}

TEST_CASE_METHOD(Fixture, "cancelling ends everything soon, and no callback is lost") {
  std::atomic<bool> cancel{false};
  HttpClient client(2, &cancel);
  int interrupted = 0;
  for (int i = 0; i < 5; ++i) {
    HttpRequest asked = request(server.url("silent") + "/file");
    auto patient = std::make_shared<HttpProfile>(*asked.profile);
    patient->stall_timeout = milliseconds(60'000);
    asked.profile = patient;
    client.start(asked, [&](const HttpResult& result) {
      interrupted += !result && result.error().error.code() == StatusCode::kInterrupted;
    });
  }
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(200));
    cancel = true;
    client.wake();
  });
  const auto begin = std::chrono::steady_clock::now();
  while (client.pending() != 0) client.step(milliseconds(100));
  CHECK(std::chrono::steady_clock::now() - begin < milliseconds(2'000));
  CHECK(interrupted == 5);
  later.join();
}

TEST_CASE_METHOD(Fixture, "a server that drips bytes has stalled") {
  HttpRequest asked = request(server.url("drip") + "/file");
  CHECK_THAT(failure(HttpClient().get(asked), StatusCode::kNetwork), Catch::Contains("stalled"));
}

TEST_CASE_METHOD(Fixture, "memory that runs out while a body is taken is thrown past libcurl") {
  struct Greedy : cubist::HttpSink {
    cubist::Status write(std::span<const std::uint8_t>) override { throw std::bad_alloc(); }
    cubist::Status restart() override { return {}; }
  };
  HttpClient client;
  auto asked = request(server.url("ok") + "/file");
  asked.sink = std::make_shared<Greedy>();
  CHECK_THROWS_AS(client.get(std::move(asked)), std::bad_alloc);
  CHECK(client.pending() == 0);
  const auto next = client.get(request(server.url("ok") + "/file"));
  REQUIRE(next);
  CHECK(next->body == bytes);
}
