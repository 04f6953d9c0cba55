#include "oci/token.h"

#include <algorithm>
#include <ctime>

#include "document/document.h"
#include "oci/base64.h"

namespace cubist::oci {
namespace {

constexpr std::size_t kMaxTokenBytes = 64 * 1024;
constexpr std::int64_t kLongestLifetime = 24 * 3600;
// Dates a token may have: up to the year 9999.
constexpr std::int64_t kLastSecond = 253'402'300'799;

/// Nothing that could end a header's line or begin another.
bool is_sendable(std::string_view text) {
  return !text.empty() && text.size() <= kMaxTokenBytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

std::string date(std::int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts);
  return {text, length};
}

}  // namespace

Result<Token> parse_token_answer(std::string_view text, std::string_view server) {
  const auto bad = [&](std::string_view why) {
    return fail(StatusCode::kNetwork, "{}: the answer is not usable: {}", server, why);
  };
  const auto document = Document::parse(text, server);
  if (!document || !document->root().is_object()) return bad("it is not a JSON object");
  Token token;
  const DocumentNode root = document->root();
  if (!root.member("token").read(token.text)) root.member("access_token").read(token.text);
  std::int64_t seconds = token.lifetime.count();
  root.member("expires_in").read_integer(seconds, 0, INT64_MAX);
  if (!document->status()) return bad("a member of it is of the wrong type");
  if (token.text.empty()) return bad("it has no token");
  if (!is_sendable(token.text)) return bad("its token has characters that no token has");
  token.lifetime = std::chrono::seconds(std::min(seconds, kLongestLifetime));
  return token;
}

std::string describe_validity(std::string_view token, std::int64_t now) {
  const std::size_t first = token.find('.');
  if (first == std::string_view::npos) return {};
  const std::string_view rest = token.substr(first + 1);
  const auto claims = from_base64(rest.substr(0, rest.find('.')));
  if (!claims) return {};
  const auto document = Document::parse(*claims, "token");
  if (!document || !document->root().is_object()) return {};
  std::int64_t expires = kLastSecond;
  std::int64_t begins = 0;
  document->root().member("exp").read_integer(expires, 0, kLastSecond);
  document->root().member("nbf").read_integer(begins, 0, kLastSecond);
  if (!document->status()) return {};
  if (expires <= now) return "it expired at " + date(expires);
  if (begins > now) return "it is valid only from " + date(begins) + " on";
  return {};
}

}  // namespace cubist::oci
