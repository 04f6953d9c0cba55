#include "registry/http_client.h"

#include <curl/curl.h>
#include <signal.h>

#include <algorithm>
#include <ctime>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <random>
#include <vector>

#include "base/log.h"
#include "registry/counters.h"
#include "registry/http_transfer.h"

namespace cubist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// So often a cancelled run notices.
constexpr milliseconds kLongestWait{100};
// What counts as progress within a stall timeout: a server that drips single bytes has stalled.
constexpr std::uint64_t kMinProgressBytes = 1024;
// A pause of the caller must not look like a pause of the server.
constexpr milliseconds kLongestIdleStep{1000};
// Large files move in fewer, larger steps. Unit: bytes.
constexpr long kUploadBufferBytes = 512 * 1024;
constexpr long kSinkBufferBytes = 256 * 1024;

/// OpenSSL writes to sockets with write(), so a closed connection raises SIGPIPE; libcurl's own
/// protection changes the handler of the whole process. This blocks it for the calling thread.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeGuard() {
    const timespec no_wait{0, 0};
    if (sigismember(&before_, SIGPIPE) == 0) {
      while (sigtimedwait(&pipe_, nullptr, &no_wait) == SIGPIPE) {
      }
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

struct Exchange {
  HttpTransfer transfer;
  HttpClient::Done done;
  Clock::time_point not_before;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::uint64_t moved = 0;  ///< bytes of header and body in this try, in both directions
  std::uint64_t body_sent = 0;
  std::optional<Error> body_error{};  ///< the file that is sent cannot be read
  std::uint64_t progress_mark = 0;
  milliseconds idle{0};
  Clock::time_point begun{};  ///< this try
  HttpCounters* counters = nullptr;
  std::exception_ptr* thrown = nullptr;  ///< by a call from libcurl, through which it cannot pass
  char error_text[CURL_ERROR_SIZE] = {};
};

/// What a call from libcurl gives: that of `work`, or `failed` where memory ran out in it.
template <class Work>
std::size_t guarded(Exchange& exchange, std::size_t failed, Work work) {
  try {
    return work();
  } catch (...) {
    *exchange.thrown = std::current_exception();
    return failed;
  }
}

std::size_t on_header(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::size_t bytes = size * count;
  exchange.moved += bytes;
  return guarded(exchange, 0, [&] {
    return exchange.transfer.take_header({data, bytes}, std::time(nullptr)) ? bytes : 0;
  });
}

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::size_t bytes = size * count;
  exchange.moved += bytes;
  exchange.counters->received_bytes += bytes;
  add_to_counters({.http_received_bytes = bytes});
  const auto* first = reinterpret_cast<const std::uint8_t*>(data);
  return guarded(exchange, 0, [&] {
    return exchange.transfer.take_body({first, bytes}) ? bytes : 0;
  });
}

std::size_t on_send(char* out, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const HttpBody& body = *exchange.transfer.request().body;
  const auto bytes = static_cast<std::size_t>(
      std::min<std::uint64_t>(size * count, body.length - exchange.body_sent));
  const std::span<std::uint8_t> block(reinterpret_cast<std::uint8_t*>(out), bytes);
  return guarded(exchange, CURL_READFUNC_ABORT, [&]() -> std::size_t {
    const Status read = body.from->read(body.offset + exchange.body_sent, block);
    if (!read) {
      exchange.body_error = read.error();
      return CURL_READFUNC_ABORT;
    }
    exchange.body_sent += bytes;
    exchange.moved += bytes;
    return bytes;
  });
}

/// libcurl goes back to the beginning when a connection that it used again turns out to be closed.
int on_seek(void* user, curl_off_t offset, int origin) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_CANTSEEK;
  exchange.body_sent = static_cast<std::uint64_t>(offset);
  return CURL_SEEKFUNC_OK;
}

bool is_trusted(const HttpProfile& profile, const Url& url) {
  return std::any_of(profile.trusted_hosts.begin(), profile.trusted_hosts.end(),
                     [&](const std::string& host) {
                       return host == url.host || host == url.host + ":" + url.port;
                     });
}

void add_header(Exchange& exchange, const std::string& line) {
  exchange.headers = curl_slist_append(exchange.headers, line.c_str());
}

void set_credentials(Exchange& exchange, const HttpProfile& profile, const Url& url) {
  CURL* easy = exchange.easy;
  if (const auto& given = exchange.transfer.request().authorization) {
    if (!given->empty()) add_header(exchange, "Authorization: " + *given);
    return;
  }
  if (!url.user.empty()) {
    curl_easy_setopt(easy, CURLOPT_USERNAME, url.user.c_str());
    curl_easy_setopt(easy, CURLOPT_PASSWORD, url.password.c_str());
    return;
  }
  for (const auto& [host, token] : profile.bearer_tokens) {
    if (host == url.host && (url.scheme == "https" || url.is_loopback())) {
      add_header(exchange, "Authorization: Bearer " + token);
      return;
    }
  }
  curl_easy_setopt(easy, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (!profile.netrc_file.empty()) {
    curl_easy_setopt(easy, CURLOPT_NETRC_FILE, profile.netrc_file.c_str());
  }
}

void set_trust(CURL* easy, const HttpProfile& profile, const Url& url) {
  if (!profile.ca_file.empty()) curl_easy_setopt(easy, CURLOPT_CAINFO, profile.ca_file.c_str());
  if (!profile.ca_folder.empty()) curl_easy_setopt(easy, CURLOPT_CAPATH, profile.ca_folder.c_str());
  if (!profile.client_cert.empty()) {
    curl_easy_setopt(easy, CURLOPT_SSLCERT, profile.client_cert.c_str());
  }
  if (!profile.proxy.empty()) curl_easy_setopt(easy, CURLOPT_PROXY, profile.proxy.c_str());
  if (url.scheme == "https" && is_trusted(profile, url)) {
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
  }
}

void set_method(Exchange& exchange) {
  CURL* easy = exchange.easy;
  const HttpRequest& request = exchange.transfer.request();
  if (request.method == HttpMethod::kGet) return;
  if (request.method == HttpMethod::kHead) {
    curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    return;
  }
  const std::uint64_t length = request.body ? request.body->length : 0;
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, std::string(to_string(request.method)).c_str());
  // Whether it may be sent is settled by requests before it; waiting to be told costs a second.
  add_header(exchange, "Expect:");
  if (length == 0) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, "");
    add_header(exchange, "Content-Type:");
    return;
  }
  curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
  curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kUploadBufferBytes);
  curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(length));
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, &on_send);
  curl_easy_setopt(easy, CURLOPT_READDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, &on_seek);
  curl_easy_setopt(easy, CURLOPT_SEEKDATA, &exchange);
}

void set_options(Exchange& exchange) {
  CURL* easy = exchange.easy;
  const HttpTransfer::Wire wire = exchange.transfer.wire();
  const HttpProfile& profile = *exchange.transfer.request().profile;
  curl_easy_setopt(easy, CURLOPT_URL, wire.url.text.c_str());
#if LIBCURL_VERSION_NUM >= 0x075500
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
#else
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS, static_cast<long>(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, "cubist");
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  // Over TLS it is known at once whether one connection does for all; over plain HTTP the others
  // would wait for the first answer to end.
  curl_easy_setopt(easy, CURLOPT_PIPEWAIT, wire.url.scheme == "https" ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(profile.connect_timeout.count()));
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange.error_text);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);

  // Packed answers would not have the offsets and the digest that were asked for.
  add_header(exchange, "Accept-Encoding: identity");
  const std::string& accept = exchange.transfer.request().accept;
  if (!accept.empty()) add_header(exchange, "Accept: " + accept);
  if (!wire.range.empty()) add_header(exchange, "Range: bytes=" + wire.range);
  if (!wire.range.empty() && !wire.if_range.empty()) {
    add_header(exchange, "If-Range: " + wire.if_range);
  }
  for (const std::string& line : exchange.transfer.request().headers) add_header(exchange, line);
  set_method(exchange);
  if (exchange.transfer.request().sink) {
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kSinkBufferBytes);
  }
  if (wire.credentials) set_credentials(exchange, profile, exchange.transfer.request().url);
  set_trust(easy, profile, wire.url);
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange.headers);
  log(LogLevel::kDebug, "{} {} {}", to_string(exchange.transfer.request().method), wire.url.shown(),
      wire.range);
}

bool is_transient(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_PARTIAL_FILE:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_SSL_CONNECT_ERROR:
      return true;
    default:
      return false;
  }
}

bool is_unreachable(CURLcode code) {
  return code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_COULDNT_RESOLVE_HOST ||
         code == CURLE_COULDNT_CONNECT || code == CURLE_OPERATION_TIMEDOUT ||
         code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CONNECT_ERROR;
}

std::string_view advice_for(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return "set CURL_CA_BUNDLE or SSL_CERT_FILE to the file with your CA certificates";
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return "check the network, the proxy (https_proxy) and the address, or use another source";
    default:
      return "check the network, or use another source";
  }
}

HttpTransfer::End end_of(const Exchange& exchange, CURLcode code) {
  if (exchange.body_error) {
    return {false, false, false, exchange.body_error->message(), "nothing was changed"};
  }
  if (code == CURLE_OK) return {true, false, false, {}, {}};
  const std::string_view text =
      exchange.error_text[0] != '\0' ? exchange.error_text : curl_easy_strerror(code);
  return {false, is_transient(code), is_unreachable(code), without_credentials(text),
          std::string(advice_for(code))};
}

HttpError interrupted(HttpTransfer& transfer) {
  return {Error(StatusCode::kInterrupted,
                fmt::format("{} {}: interrupted", to_string(transfer.request().method),
                            transfer.request().url.shown())),
          0, false, transfer.take_partial()};
}

}  // namespace

struct HttpClient::State {
  State(unsigned parallel_, const std::atomic<bool>* cancel_)
      : parallel(std::max(1U, parallel_)), cancel(cancel_) {
    static std::once_flag once;
    std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
    multi = curl_multi_init();
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, static_cast<long>(parallel));
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    const SigpipeGuard guard;
    for (Exchange& exchange : active) detach(exchange);
    for (CURL* easy : spare) curl_easy_cleanup(easy);
    curl_multi_cleanup(multi);
  }

  bool cancelled() const { return cancel != nullptr && cancel->load(); }
  void attach(Exchange& exchange);
  void detach(Exchange& exchange);
  void start_due();
  bool collect();
  bool end_stalled();
  void finish(std::list<Exchange>::iterator exchange, const HttpTransfer::End& end);
  void cancel_all();
  std::list<Exchange> take_all();
  milliseconds wait_time(milliseconds max_wait) const;
  bool pump();

  unsigned parallel;
  const std::atomic<bool>* cancel;
  CURLM* multi = nullptr;
  std::vector<CURL*> spare;
  std::list<Exchange> waiting;
  std::list<Exchange> active;
  Clock::time_point last_step = Clock::now();
  HttpCounters counters;
  std::exception_ptr thrown;
  std::mt19937_64 random{std::random_device{}()};
};

void HttpClient::State::attach(Exchange& exchange) {
  if (spare.empty()) {
    exchange.easy = curl_easy_init();
  } else {
    exchange.easy = spare.back();
    spare.pop_back();
  }
  exchange.moved = exchange.progress_mark = exchange.body_sent = 0;
  exchange.idle = milliseconds(0);
  exchange.begun = Clock::now();
  exchange.error_text[0] = '\0';
  exchange.counters = &counters;
  exchange.thrown = &thrown;
  set_options(exchange);
  curl_multi_add_handle(multi, exchange.easy);
  ++counters.requests;
  add_to_counters({.http_requests = 1});
}

void HttpClient::State::detach(Exchange& exchange) {
  curl_multi_remove_handle(multi, exchange.easy);
  curl_easy_reset(exchange.easy);
  spare.push_back(exchange.easy);
  exchange.easy = nullptr;
  curl_slist_free_all(exchange.headers);
  exchange.headers = nullptr;
}

void HttpClient::State::start_due() {
  const auto now = Clock::now();
  for (auto next = waiting.begin(); next != waiting.end() && active.size() < parallel;) {
    const auto exchange = next++;
    if (exchange->not_before > now) continue;
    active.splice(active.end(), waiting, exchange);
    attach(*exchange);
  }
}

void HttpClient::State::finish(std::list<Exchange>::iterator exchange,
                               const HttpTransfer::End& end) {
  detach(*exchange);
  const HttpTransfer::Next next =
      exchange->transfer.finish(end, std::uniform_real_distribution<double>(0, 1)(random));
  if (next.step == HttpTransfer::Step::kDone) {
    std::list<Exchange> out;
    out.splice(out.end(), active, exchange);
    exchange->done(exchange->transfer.take_result());
    return;
  }
  if (next.step == HttpTransfer::Step::kRetry) {
    ++counters.retries;
    add_to_counters({.http_retries = 1});
  }
  exchange->not_before = Clock::now() + next.delay;
  // In front: what was begun is ended before something new begins.
  waiting.splice(waiting.begin(), active, exchange);
}

bool HttpClient::State::collect() {
  bool any = false;
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Exchange* found = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &found);
    const CURLcode code = message->data.result;
    const auto exchange = std::find_if(active.begin(), active.end(),
                                       [&](const Exchange& one) { return &one == found; });
    if (exchange == active.end()) continue;
    finish(exchange, end_of(*exchange, code));
    any = true;
  }
  return any;
}

bool HttpClient::State::end_stalled() {
  const auto now = Clock::now();
  const auto elapsed =
      std::min(std::chrono::duration_cast<milliseconds>(now - last_step), kLongestIdleStep);
  last_step = now;
  bool any = false;
  for (auto next = active.begin(); next != active.end();) {
    const auto exchange = next++;
    curl_off_t sent_after = 0;  // 0 until the request is on its way
    curl_easy_getinfo(exchange->easy, CURLINFO_PRETRANSFER_TIME_T, &sent_after);
    if (exchange->moved - exchange->progress_mark >= kMinProgressBytes) {
      exchange->progress_mark = exchange->moved;
      exchange->idle = milliseconds(0);
      continue;
    }
    // What was before it began is no fault of the server.
    exchange->idle +=
        std::min(elapsed, std::chrono::duration_cast<milliseconds>(now - exchange->begun));
    const HttpProfile& profile = *exchange->transfer.request().profile;
    milliseconds limit = profile.stall_timeout;
    // Before that libcurl's connect_timeout rules, which does not see every way to hang.
    if (sent_after == 0) limit += profile.connect_timeout;
    if (exchange->idle < limit) continue;
    finish(exchange, {false, true, false,
                      fmt::format("stalled: nothing more came for {:.3g} s after {} bytes",
                                  static_cast<double>(limit.count()) / 1000.0,
                                  exchange->transfer.received_bytes()),
                      "check the network or proxy, or use another source"});
    any = true;
  }
  return any;
}

std::list<Exchange> HttpClient::State::take_all() {
  std::list<Exchange> all;
  for (Exchange& exchange : active) detach(exchange);
  all.splice(all.end(), active);
  all.splice(all.end(), waiting);
  return all;
}

void HttpClient::State::cancel_all() {
  std::list<Exchange> all = take_all();
  for (Exchange& exchange : all) {
    exchange.done(tl::unexpected<HttpError>(interrupted(exchange.transfer)));
  }
}

milliseconds HttpClient::State::wait_time(milliseconds max_wait) const {
  milliseconds wait = std::min(max_wait, kLongestWait);
  if (active.size() >= parallel) return wait;
  const auto now = Clock::now();
  for (const Exchange& exchange : waiting) {
    const auto until = std::chrono::ceil<milliseconds>(exchange.not_before - now);
    wait = std::clamp(until, milliseconds(0), wait);
  }
  return wait;
}

bool HttpClient::State::pump() {
  if (cancelled()) {
    cancel_all();
    return true;
  }
  start_due();
  int running = 0;
  {
    const SigpipeGuard guard;
    curl_multi_perform(multi, &running);
  }
  if (thrown) {
    take_all();  // nobody is told: whoever asked may be gone by the time this is caught
    std::rethrow_exception(std::exchange(thrown, nullptr));
  }
  const bool done = collect();
  return end_stalled() || done;
}

HttpClient::HttpClient(unsigned parallel, const std::atomic<bool>* cancel)
    : state_(std::make_unique<State>(parallel, cancel)) {}
HttpClient::~HttpClient() = default;

void HttpClient::start(HttpRequest request, Done done) {
  if (!request.profile) {
    request.profile = std::make_shared<const HttpProfile>(http_profile_from_environment());
  }
  state_->waiting.push_back(
      Exchange{HttpTransfer(std::move(request)), std::move(done), Clock::now()});
}

void HttpClient::step(milliseconds max_wait) {
  if (state_->pump()) return;
  const milliseconds wait = state_->wait_time(max_wait);
  curl_multi_poll(state_->multi, nullptr, 0, static_cast<int>(wait.count()), nullptr);
  state_->pump();
}

std::size_t HttpClient::pending() const { return state_->active.size() + state_->waiting.size(); }

HttpResult HttpClient::get(HttpRequest request) {
  std::optional<HttpResult> result;
  start(std::move(request), [&](HttpResult got) { result = std::move(got); });
  while (!result) step(kLongestWait);
  return std::move(*result);
}

void HttpClient::wake() { curl_multi_wakeup(state_->multi); }

HttpCounters HttpClient::counters() const { return state_->counters; }

Result<HttpResponse> to_result(HttpResult result) {
  if (!result) return tl::unexpected<Error>(std::move(result.error().error));
  return std::move(*result);
}

}  // namespace cubist
