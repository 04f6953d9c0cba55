#include "oci/session.h"

#include <chrono>
#include <ctime>
#include <mutex>

#include "archive/zip.h"
#include "base/base64.h"
#include "base/log.h"
#include "document/document.h"
#include "document/json_text.h"
#include "oci/bytes.h"
#include "oci/challenge.h"
#include "oci/credentials.h"
#include "oci/token.h"

namespace cubist::oci {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMaxTokenAnswer = 256 * 1024;
// A token that is about to expire may do so on its way.
constexpr std::chrono::seconds kTokenMargin{5};

bool is_private(const Url& url) { return url.scheme == "https" || url.is_loopback(); }

std::string escaped(std::string_view text) {
  constexpr std::string_view kPlain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string out;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
  }
  return out;
}

/// What the registry says is wrong: { "errors": [ { "code", "message" } ] }.
std::string reason_in(const HttpResponse& response) {
  const auto document = Document::parse(text_of(response.body), "answer");
  if (!document || !document->root().is_object()) return {};
  std::string code;
  std::string message;
  const auto errors = document->root().member("errors").items();
  if (errors.empty() || !errors.front().is_object()) return {};
  errors.front().member("code").read(code);
  errors.front().member("message").read(message);
  return code.empty() && message.empty() ? std::string()
                                         : ": " + in_quotes(message.empty() ? code : message);
}

std::string_view advice_for(int status) {
  switch (status) {
    case 403:
      return "the registry does not let you do that: check the repository's name and what your "
             "account may do";
    case 404:
      return "it is not there: check the repository, the tag or digest, and the account";
    case 413:
      return "it is larger than the registry takes";
    default:
      return "the registry does not take it";
  }
}

struct TokenRequest {
  HttpRequest http;
  std::string form;  ///< of a POST; outlives the request
};

}  // namespace

Error refusal(const HttpResponse& response, std::string_view request) {
  return Error(StatusCode::kNetwork, fmt::format("{}: {}{}; {}", request, response.status,
                                                 reason_in(response), advice_for(response.status)));
}

HttpCounters Clients::counters() const {
  HttpCounters all;
  for (const auto& client : clients_) {
    const HttpCounters one = client->counters();
    all.requests += one.requests;
    all.retries += one.retries;
    all.received_bytes += one.received_bytes;
  }
  return all;
}

struct Session::State {
  Reference reference;
  Access access = Access::kPull;
  Url base;  ///< <scheme>://<host>/v2/<repository>/
  std::shared_ptr<const HttpProfile> profile;
  std::shared_ptr<const HttpProfile> one_try;

  std::mutex mutex;
  std::optional<Credentials> credentials;
  std::string header;  ///< value of Authorization
  std::string token;   ///< what is in it, for its dates
  Clock::time_point good_until = Clock::time_point::max();

  Status answer(HttpClient& client, const HttpResponse& refused, const std::string& sent);
  Status use_basic(const std::string& sent);
  Status fetch_token(HttpClient& client, const Challenge& challenge);
  Result<TokenRequest> token_request(const Challenge& challenge) const;
  Status load_credentials();
  Error rejected(const HttpResponse& response) const;
  std::string scope() const;
  std::string current();
};

std::string Session::State::scope() const {
  return fmt::format("repository:{}:{}", reference.repository,
                     access == Access::kPush ? "pull,push" : "pull");
}

Status Session::State::load_credentials() {
  if (credentials) return {};
  CUBIST_ASSIGN_OR_RETURN(credentials, find_credentials(reference));
  log(LogLevel::kDebug, "{}: credentials from {}", reference.host,
      credentials->empty() ? "nowhere" : credentials->origin);
  return {};
}

Error Session::State::rejected(const HttpResponse& response) const {
  std::string text = fmt::format("{}: the registry refuses ", reference.text());
  if (!token.empty()) {
    const std::string validity = describe_validity(token, std::time(nullptr));
    text += "the tokens that its token server gives";
    if (!validity.empty()) {
      text += fmt::format(": by the clock of this machine {}", validity);
      return Error(StatusCode::kNetwork, text +
                                             "; check the clocks of this machine, the registry "
                                             "and the token server");
    }
  } else {
    text += "access";
  }
  text += reason_in(response);
  if (credentials && !credentials->empty()) {
    return Error(StatusCode::kNetwork,
                 fmt::format("{}; the credentials from {} do not do: log in again", text,
                             credentials->origin));
  }
  return Error(StatusCode::kNetwork,
               fmt::format("{}; there are no credentials for {}: log in with 'skopeo login' or "
                           "'docker login', or set REGISTRY_AUTH_FILE",
                           text, reference.host));
}

Status Session::State::use_basic(const std::string& sent) {
  if (credentials->password.empty()) {
    return fail(StatusCode::kNetwork,
                "{}: the registry wants a user and a password, and there are none for {}: log in "
                "with 'skopeo login' or 'docker login', or set REGISTRY_AUTH_FILE",
                reference.text(), reference.host);
  }
  if (!is_private(base)) {
    return fail(StatusCode::kNetwork,
                "{}: the registry wants a password, which is not sent over plain http to another "
                "machine; use https",
                reference.text());
  }
  header = "Basic " + to_base64(bytes_of(credentials->user + ":" + credentials->password));
  token.clear();
  good_until = Clock::time_point::max();
  if (header != sent) return {};
  return fail(StatusCode::kNetwork,
              "{}: the registry refuses the user and password from {}: log in again",
              reference.text(), credentials->origin);
}

Result<TokenRequest> Session::State::token_request(const Challenge& challenge) const {
  const auto realm = parse_url(challenge.parameter("realm"));
  if (!realm) {
    return fail(StatusCode::kNetwork, "{}: the registry names no usable token server ({})",
                reference.text(), in_quotes(challenge.parameter("realm")));
  }
  if (base.scheme == "https" && realm->scheme != "https") {
    return fail(StatusCode::kNetwork,
                "{}: the registry names a token server without https ({}); not asked",
                reference.text(), realm->shown());
  }
  const bool anonymous = credentials->empty();
  if (!anonymous && !is_private(*realm)) {
    return fail(StatusCode::kNetwork,
                "{}: the token server {} would get a password over plain http; not asked",
                reference.text(), realm->shown());
  }
  TokenRequest request;
  std::string query =
      fmt::format("service={}&scope={}", escaped(challenge.parameter("service")), escaped(scope()));
  request.http.profile = profile;
  request.http.max_bytes = kMaxTokenAnswer;
  request.http.any_status = true;
  request.http.authorization = "";
  if (!credentials->identity_token.empty()) {
    request.form = fmt::format("{}&client_id=cubist&grant_type=refresh_token&refresh_token={}",
                               query, escaped(credentials->identity_token));
    request.http.method = HttpMethod::kPost;
    request.http.headers.emplace_back("Content-Type: application/x-www-form-urlencoded");
    request.http.url = *realm;
    return request;
  }
  if (!anonymous) {
    query += fmt::format("&account={}", escaped(credentials->user));
    request.http.authorization =
        "Basic " + to_base64(bytes_of(credentials->user + ":" + credentials->password));
  }
  const char join = realm->text.find('?') == std::string::npos ? '?' : '&';
  CUBIST_ASSIGN_OR_RETURN(request.http.url, parse_url(realm->text + join + query));
  return request;
}

Status Session::State::fetch_token(HttpClient& client, const Challenge& challenge) {
  CUBIST_ASSIGN_OR_RETURN(TokenRequest request, token_request(challenge));
  const std::string server = fmt::format("token server {}", request.http.url.shown());
  if (!request.form.empty()) {
    request.http.body =
        HttpBody{memory_access(server, bytes_of(request.form)), 0, request.form.size()};
  }
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, to_result(client.get(request.http)));
  if (response.status != 200) {
    return fail(
        StatusCode::kNetwork, "{}: {} gives no token: {}{}; {}", reference.text(), server,
        response.status, reason_in(response),
        credentials->empty()
            ? fmt::format("there are no credentials for {}: log in with 'skopeo login' or "
                          "'docker login', or set REGISTRY_AUTH_FILE",
                          reference.host)
            : fmt::format("the credentials from {} do not do: log in again", credentials->origin));
  }
  CUBIST_ASSIGN_OR_RETURN(Token got, parse_token_answer(text_of(response.body), server));
  header = "Bearer " + got.text;
  token = std::move(got.text);
  good_until = Clock::now() + std::max(got.lifetime - kTokenMargin, std::chrono::seconds(1));
  return {};
}

/// After a 401 for a request that had `sent`: sees to another header, or says why there is none.
Status Session::State::answer(HttpClient& client, const HttpResponse& refused,
                              const std::string& sent) {
  const std::lock_guard lock(mutex);
  if (header != sent && !header.empty()) return {};  // another thread was faster
  CUBIST_RETURN_IF_ERROR(load_credentials());
  const auto challenges = parse_challenges(refused.challenges);
  for (const Challenge& challenge : challenges) {
    if (challenge.scheme == "bearer") return fetch_token(client, challenge);
  }
  for (const Challenge& challenge : challenges) {
    if (challenge.scheme == "basic") return use_basic(sent);
  }
  return tl::unexpected<Error>(rejected(refused));
}

std::string Session::State::current() {
  const std::lock_guard lock(mutex);
  if (Clock::now() >= good_until) header.clear();
  return header;
}

Session::Session(std::unique_ptr<State> state) : state_(std::move(state)) {}
Session::~Session() = default;

Result<std::shared_ptr<Session>> Session::open(const Reference& reference, Access access,
                                               const ConnectOptions& options) {
  auto state = std::make_unique<State>();
  state->reference = reference;
  state->access = access;
  CUBIST_ASSIGN_OR_RETURN(const Url plain, parse_url("http://" + reference.host));
  const bool http = options.plain_http.value_or(plain.is_loopback());
  CUBIST_ASSIGN_OR_RETURN(
      state->base, parse_url(fmt::format("{}://{}/v2/{}/", http ? "http" : "https", reference.host,
                                         reference.repository)));
  state->profile = options.profile;
  if (!state->profile) {
    state->profile = std::make_shared<const HttpProfile>(http_profile_from_environment());
  }
  auto one_try = std::make_shared<HttpProfile>(*state->profile);
  one_try->retry.max_tries = 1;
  state->one_try = std::move(one_try);
  return std::shared_ptr<Session>(new Session(std::move(state)));
}

Url Session::url(std::string_view path) const {
  Url url = state_->base;
  url.text += path;
  return url;
}

const Reference& Session::reference() const { return state_->reference; }

RetryPolicy Session::retry() const { return state_->profile->retry; }

std::shared_ptr<const HttpProfile> Session::profile_for_one_try() const { return state_->one_try; }

std::string Session::authorization() const { return state_->current(); }

void Session::forget_authorization() {
  const std::lock_guard lock(state_->mutex);
  state_->header.clear();
}

Result<HttpResponse> Session::send(HttpClient& client, HttpRequest request) {
  // One for what the registry wants to see at all, one for a token that it does not like.
  constexpr int kAnswers = 2;
  if (!request.profile) request.profile = state_->profile;
  request.any_status = true;
  // An upload may go on elsewhere; who one is here is no business of another host.
  const bool own = request.url.same_origin(state_->base);
  for (int answers = 0;; ++answers) {
    const std::string header = own ? state_->current() : std::string();
    request.authorization = header;
    CUBIST_ASSIGN_OR_RETURN(HttpResponse response, to_result(client.get(request)));
    if (response.status != 401 || !own) return response;
    if (!response.final_url.same_origin(state_->base)) return response;  // it was redirected
    if (answers == kAnswers) {
      const std::lock_guard lock(state_->mutex);
      return tl::unexpected<Error>(state_->rejected(response));
    }
    CUBIST_RETURN_IF_ERROR(state_->answer(client, response, header));
  }
}

}  // namespace cubist::oci
