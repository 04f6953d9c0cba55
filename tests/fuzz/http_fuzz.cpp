#include <algorithm>
#include <string_view>
#include <vector>

#include "check.h"
#include "registry/http_transfer.h"

// A conversation in lines. The first says what is asked for ("whole", "range", "last", "if-range");
// of the others "=N" is N bytes of body, "." the end of an answer, "!" a connection that breaks,
// and everything else a line of a header.

namespace cubist {
namespace {

constexpr std::uint64_t kMaxBytes = 1000;
constexpr std::uint64_t kPart = 100;

HttpRequest request_of(std::string_view kind) {
  HttpRequest request;
  request.url = parse_url("https://user:secret@host.example/dir/file").value();
  request.profile = std::make_shared<const HttpProfile>();
  request.max_bytes = kMaxBytes;
  if (kind == "range" || kind == "if-range") request.range = HttpRequest::Range{50, kPart};
  if (kind == "if-range") request.if_range = "\"v1\"";
  if (kind == "last") request.last_bytes = kPart;
  return request;
}

void check_wire(const HttpTransfer& transfer) {
  const HttpTransfer::Wire wire = transfer.wire();
  FUZZ_CHECK(wire.url.scheme == "https");
  FUZZ_CHECK(!wire.credentials || wire.url.host == "host.example");
  FUZZ_CHECK(wire.url.text.find("secret") == std::string::npos);
  FUZZ_CHECK(wire.range.find_first_not_of("0123456789-") == std::string::npos);
  FUZZ_CHECK(wire.if_range.find_first_of("\r\n") == std::string::npos);
  FUZZ_CHECK(transfer.received_bytes() <= kMaxBytes);
}

void check_result(HttpTransfer& transfer, const HttpRequest& request) {
  const HttpResult result = transfer.take_result();
  if (!result) {
    FUZZ_CHECK(result.error().error.code() != StatusCode::kInternal);
    FUZZ_CHECK(result.error().error.message().find("secret") == std::string::npos);
    return;
  }
  FUZZ_CHECK(result->body.size() <= kMaxBytes);
  if (request.range && !result->changed) FUZZ_CHECK(result->body.size() == kPart);
  if (request.last_bytes && !result->changed) FUZZ_CHECK(result->body.size() <= kPart);
}

class Conversation {
 public:
  explicit Conversation(std::string_view kind) : request_(request_of(kind)), transfer_(request_) {}

  /// False once there is nothing more to say.
  bool say(std::string_view line) {
    if (line == "." || line == "!") return end(line == ".");
    if (!go_on_) return true;
    if (line.starts_with('=')) {
      std::size_t bytes = 0;
      for (const char c : line.substr(1, 4))
        bytes = bytes * 10 + static_cast<unsigned char>(c) % 10;
      go_on_ = transfer_.take_body(std::vector<std::uint8_t>(bytes, 'x'));
    } else {
      go_on_ = transfer_.take_header(line, 1'700'000'000);
    }
    return true;
  }

  bool end(bool complete) {
    const HttpTransfer::End how{complete && go_on_, true, false, "broken", "try again"};
    const HttpTransfer::Next next = transfer_.finish(how, 0.5);
    go_on_ = true;
    if (next.step == HttpTransfer::Step::kDone) {
      check_result(transfer_, request_);
      return false;
    }
    FUZZ_CHECK(next.delay.count() >= 0 && next.delay <= std::chrono::seconds(60));
    check_wire(transfer_);
    return true;
  }

 private:
  HttpRequest request_;
  HttpTransfer transfer_;
  bool go_on_ = true;
};

}  // namespace
}  // namespace cubist

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  // The password must be ours alone: a server may well say the word itself.
  if (text.find("secret") != std::string_view::npos) return 0;
  const auto next_line = [&] {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return line;
  };
  cubist::Conversation conversation(next_line());
  while (!text.empty()) {
    if (!conversation.say(next_line())) return 0;
  }
  // Tries and redirects are bounded, so this comes to an end.
  int rounds = 0;
  while (conversation.end(false)) FUZZ_CHECK(++rounds < 100);
  return 0;
}
