#include "registry/http_transfer.h"

#include <algorithm>

namespace cubist {
namespace {

constexpr int kMaxRedirects = 10;
// Bodies of redirects and errors are read to keep the connection, but not without end.
constexpr std::uint64_t kMaxDiscardedBytes = 64 * 1024;

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

std::string_view advice_for(int status) {
  switch (status) {
    case 401:
    case 403:
      return "the server does not let you have it: check credentials (netrc, CUBIST_BEARER_TOKEN) "
             "or use another source";
    case 404:
    case 410:
      return "it is not there: check the source's address, or use another source";
    case 407:
      return "the proxy wants credentials (https_proxy=http://user:password@host)";
    case 416:
      return "the file is shorter than it should be: use another source";
    default:
      return "try again later, or use another source";
  }
}

}  // namespace

std::string_view to_string(HttpMethod method) {
  switch (method) {
    case HttpMethod::kGet:
      return "GET";
    case HttpMethod::kHead:
      return "HEAD";
    case HttpMethod::kPost:
      return "POST";
    case HttpMethod::kPatch:
      return "PATCH";
    case HttpMethod::kPut:
      break;
  }
  return "PUT";
}

HttpTransfer::HttpTransfer(HttpRequest request)
    : request_(std::move(request)), url_(request_.url), total_size_(request_.total_size) {
  const std::shared_ptr<const PartialBody> partial = std::move(request_.partial);
  if (partial == nullptr || partial->validator.empty() || request_.last_bytes) return;
  const std::uint64_t wanted = request_.range ? request_.range->length : request_.max_bytes;
  if (partial->bytes.size() >= wanted) return;
  body_ = partial->bytes;
  validator_ = partial->validator;
}

HttpTransfer::Wire HttpTransfer::wire() const {
  Wire wire{url_, {}, request_.if_range, url_.same_origin(request_.url)};
  const std::uint64_t have = received_bytes();
  if (request_.range) {
    const std::uint64_t last = request_.range->offset + request_.range->length - 1;
    wire.range = fmt::format("{}-{}", request_.range->offset + have, last);
  } else if (request_.last_bytes) {
    wire.range = fmt::format("-{}", *request_.last_bytes - have);
  } else if (resuming()) {
    wire.range = fmt::format("{}-", have);
  }
  if (resuming()) wire.if_range = validator_;
  return wire;
}

std::string HttpTransfer::describe(std::string_view why) const {
  std::string text = fmt::format("{} {}", to_string(request_.method), url_.shown());
  if (const std::string range = wire().range; !range.empty()) {
    text += fmt::format(" (bytes {})", range);
  }
  if (url_.text != request_.url.text) text += fmt::format(", from {}", request_.url.shown());
  return fmt::format("{}: {}", text, why);
}

void HttpTransfer::reject(StatusCode code, std::string why) {
  judgement_ = Judgement::kReject;
  error_ = HttpError{Error(code, describe(why)), headers_.status, false, nullptr};
}

bool HttpTransfer::take_header(std::string_view line, std::time_t now) {
  headers_.add_line(line, now);
  judgement_ = Judgement::kPending;
  return true;
}

void HttpTransfer::judge() {
  if (judgement_ != Judgement::kPending) return;
  if (request_.method == HttpMethod::kGet) {
    if (headers_.status == 200) return judge_whole();
    if (headers_.status == 206) return judge_part();
  }
  judgement_ = is_answer() ? Judgement::kAnswer : Judgement::kDiscard;
}

bool HttpTransfer::is_answer() const {
  const bool success = headers_.status >= 200 && headers_.status < 300;
  if (success) return request_.method != HttpMethod::kGet;
  return request_.any_status && headers_.status >= 400 && !is_retryable_status(headers_.status) &&
         !(headers_.status == 416 && resuming());
}

void HttpTransfer::drop_body() {
  const bool sunk = std::exchange(sunk_bytes_, 0) != 0;
  body_.clear();
  if (!sunk) return;
  if (const Status restarted = request_.sink->restart(); !restarted) {
    reject(restarted.error().code(), restarted.error().message());
  }
}

void HttpTransfer::reserve_body() {
  if (!request_.sink) body_.reserve(static_cast<std::size_t>(expected_bytes_));
}

bool HttpTransfer::keep(std::span<const std::uint8_t> bytes) {
  if (!request_.sink || judgement_ == Judgement::kAnswer) {
    body_.insert(body_.end(), bytes.begin(), bytes.end());
    return true;
  }
  if (const Status written = request_.sink->write(bytes); !written) {
    reject(written.error().code(), written.error().message());
    return false;
  }
  sunk_bytes_ += bytes.size();
  return true;
}

void HttpTransfer::judge_whole() {
  const bool wanted_part = request_.range || request_.last_bytes;
  if (wanted_part && (resuming() || !request_.if_range.empty())) {
    changed_ = true;
    judgement_ = Judgement::kReject;
    return;
  }
  if (wanted_part) {
    const std::string size = headers_.content_length
                                 ? fmt::format("{} bytes", *headers_.content_length)
                                 : "a whole file";
    return reject(StatusCode::kNetwork,
                  fmt::format("the server ignores Range requests and would send {}; nothing was "
                              "downloaded; use a server that answers ranges, or download the file "
                              "yourself and give its path as --source",
                              size));
  }
  if (headers_.is_html() && !request_.html_is_fine) {
    return reject(
        StatusCode::kIntegrity,
        "the server sent an HTML page in place of the file: a login, proxy or error page; "
        "open the address in a browser, or use another source");
  }
  if (!headers_.content_encoding.empty() && headers_.content_encoding != "identity") {
    return reject(StatusCode::kNetwork,
                  fmt::format("the server packed the file ('{}') without being asked to",
                              headers_.content_encoding));
  }
  if (headers_.content_length && *headers_.content_length > request_.max_bytes) {
    return reject(StatusCode::kIntegrity,
                  fmt::format("the server announces {} bytes, at most {} are expected",
                              *headers_.content_length, request_.max_bytes));
  }
  drop_body();  // the whole file comes, even if only the rest was asked for
  if (judgement_ == Judgement::kReject) return;
  resumed_ = false;
  expected_bytes_ = headers_.content_length.value_or(0);
  total_size_ = headers_.content_length;
  validator_ = headers_.validator();
  reserve_body();
  judgement_ = Judgement::kKeep;
}

void HttpTransfer::judge_part() {
  if (!headers_.content_range || !headers_.content_range->satisfied || headers_.contradictory) {
    return reject(StatusCode::kNetwork,
                  "the server's answer 206 has no usable Content-Range; use another source");
  }
  const ContentRange& range = *headers_.content_range;
  if (!judge_range(range)) return;
  const std::string validator = headers_.validator();
  const std::string& known = resuming() ? validator_ : request_.if_range;
  const bool other_version = (!known.empty() && !validator.empty() && known != validator) ||
                             (total_size_ && range.total && *total_size_ != *range.total);
  if (other_version) {
    changed_ = request_.range || request_.last_bytes;
    judgement_ = changed_ ? Judgement::kReject : Judgement::kRestart;
    return;
  }
  if (request_.last_bytes) {  // from now on it is known which bytes these are
    request_.range = HttpRequest::Range{range.first, range.last - range.first + 1};
    request_.last_bytes.reset();
  }
  if (!validator.empty()) validator_ = validator;
  if (range.total) total_size_ = range.total;
  resumed_ = resuming();
  expected_bytes_ = received_bytes() + (range.last - range.first + 1);
  if (expected_bytes_ > request_.max_bytes) {
    return reject(StatusCode::kIntegrity,
                  fmt::format("the server announces {} bytes, at most {} are expected",
                              expected_bytes_, request_.max_bytes));
  }
  reserve_body();
  judgement_ = Judgement::kKeep;
}

bool HttpTransfer::judge_range(const ContentRange& range) {
  const std::uint64_t have = received_bytes();
  std::optional<std::uint64_t> first = have;
  std::optional<std::uint64_t> last;
  if (request_.range) {
    first = request_.range->offset + have;
    last = request_.range->offset + request_.range->length - 1;
  } else if (request_.last_bytes) {
    if (!range.total) {
      reject(StatusCode::kNetwork, "the server's Content-Range does not say how long the file is");
      return false;
    }
    first = *range.total - std::min(*range.total, *request_.last_bytes - have);
    last = *range.total - 1;
  } else if (!resuming()) {
    reject(StatusCode::kNetwork, "the server sent a part (206) of what was asked for as a whole");
    return false;
  }
  if (range.first != *first || (last && range.last != *last)) {
    reject(
        StatusCode::kIntegrity,
        fmt::format("the server sent bytes {}-{} of {}; the file is shorter than it should be, or "
                    "the server does not understand ranges",
                    range.first, range.last, range.total ? fmt::format("{}", *range.total) : "*"));
    return false;
  }
  if (headers_.content_length && *headers_.content_length != range.last - range.first + 1) {
    reject(StatusCode::kNetwork,
           "the server's Content-Length and Content-Range contradict each other");
    return false;
  }
  return true;
}

bool HttpTransfer::take_body(std::span<const std::uint8_t> bytes) {
  judge();
  if (judgement_ == Judgement::kReject || judgement_ == Judgement::kRestart) return false;
  if (judgement_ == Judgement::kDiscard) {
    discarded_bytes_ += bytes.size();
    return discarded_bytes_ <= kMaxDiscardedBytes;
  }
  if (judgement_ == Judgement::kAnswer) {
    const std::uint64_t limit = headers_.status >= 400
                                    ? kMaxDiscardedBytes
                                    : std::max(request_.max_bytes, kMaxDiscardedBytes);
    return bytes.size() <= limit - body_.size() && keep(bytes);
  }
  const std::uint64_t most =
      headers_.status == 206 ? std::min(expected_bytes_, request_.max_bytes) : request_.max_bytes;
  if (bytes.size() > most - received_bytes()) {
    reject(StatusCode::kIntegrity,
           fmt::format("the server sends more than the {} bytes expected", most));
    return false;
  }
  return keep(bytes);
}

HttpTransfer::Next HttpTransfer::redirect() {
  const bool reads = request_.method == HttpMethod::kGet || request_.method == HttpMethod::kHead;
  if (!reads && headers_.status != 307 && headers_.status != 308) {
    reject(StatusCode::kNetwork,
           fmt::format("redirected with {}, which would not send it again; not followed",
                       headers_.status));
    return {};
  }
  const auto target = resolve_url(url_, headers_.location);
  if (!target) {
    reject(StatusCode::kNetwork, "redirected to what is not an http(s) URL; use another source");
    return {};
  }
  if (url_.scheme == "https" && target->scheme == "http") {
    reject(StatusCode::kNetwork,
           fmt::format("redirected from https to plain http ({}); not followed", target->shown()));
    return {};
  }
  if (++redirects_ > kMaxRedirects) {
    reject(StatusCode::kNetwork, fmt::format("more than {} redirects", kMaxRedirects));
    return {};
  }
  url_ = *target;
  return {Step::kRedirect, std::chrono::milliseconds(0)};
}

HttpTransfer::Next HttpTransfer::retry_or_fail(bool transient, std::string_view why,
                                               std::string_view advice, double random) {
  ++failed_tries_;
  const RetryPolicy policy = request_.profile ? request_.profile->retry : RetryPolicy();
  if (transient) {
    if (const auto delay = retry_delay(policy, failed_tries_, headers_.retry_after, random)) {
      url_ = request_.url;
      redirects_ = 0;
      return {Step::kRetry, *delay};
    }
  }
  std::string text(why);
  if (failed_tries_ > 1) text += fmt::format(" ({} tries)", failed_tries_);
  if (headers_.retry_after && transient && failed_tries_ < policy.max_tries) {
    text += fmt::format("; the server asks to wait {} s", headers_.retry_after->count());
  }
  reject(StatusCode::kNetwork, fmt::format("{}; {}", text, advice));
  return {};
}

HttpTransfer::Next HttpTransfer::finish(const End& end, double random) {
  constexpr std::string_view kOtherSource = "check the network, or use another source";
  if (headers_.status != 0) judge();  // an answer without a body was not looked at yet
  Next next;
  if (judgement_ == Judgement::kReject) {
    next = {};
  } else if (is_redirect(headers_.status) && !headers_.location.empty()) {
    next = redirect();
  } else if (judgement_ == Judgement::kRestart || (headers_.status == 416 && resuming())) {
    judgement_ = Judgement::kPending;
    drop_body();
    if (judgement_ != Judgement::kReject) {
      next = retry_or_fail(true, "the file changed on the server while it was downloaded",
                           kOtherSource, random);
    }
  } else if (judgement_ == Judgement::kDiscard) {
    next = retry_or_fail(is_retryable_status(headers_.status),
                         fmt::format("{} {}", headers_.status, headers_.reason),
                         advice_for(headers_.status), random);
  } else if (judgement_ == Judgement::kAnswer && headers_.status >= 400) {
    next = {};  // a refusal counts, even if it came before all was sent or with a body cut short
  } else if (!end.complete) {
    next = retry_or_fail(end.transient, end.reason, end.advice, random);
    if (error_) error_->unreachable = end.unreachable;
  } else if (judgement_ == Judgement::kPending) {
    next =
        retry_or_fail(true, "the answer has no status line that makes sense", kOtherSource, random);
  } else if (judgement_ == Judgement::kKeep && received_bytes() < expected_bytes_) {
    next = retry_or_fail(
        true,
        fmt::format("the answer ended after {} of {} bytes", received_bytes(), expected_bytes_),
        kOtherSource, random);
  }
  if (next.step != Step::kDone) {
    if (judgement_ == Judgement::kAnswer) body_.clear();
    headers_ = ResponseHeaders();
    judgement_ = Judgement::kPending;
    discarded_bytes_ = 0;
  }
  return next;
}

std::shared_ptr<const PartialBody> HttpTransfer::take_partial() {
  if (body_.empty() || validator_.empty() || changed_ || request_.sink) return nullptr;
  return std::make_shared<const PartialBody>(PartialBody{std::move(body_), validator_});
}

HttpResult HttpTransfer::take_result() {
  if (error_) {
    if (error_->error.code() == StatusCode::kNetwork) error_->partial = take_partial();
    return tl::unexpected<HttpError>(std::move(*error_));
  }
  HttpResponse response;
  response.status = headers_.status;
  response.final_url = std::move(url_);
  response.content_type = headers_.content_type;
  response.content_length = headers_.content_length;
  response.location = headers_.location;
  response.content_digest = headers_.content_digest;
  response.challenges = headers_.challenges;
  response.changed = changed_;
  if (changed_) return response;
  response.body = std::move(body_);
  response.validator = validator_;
  response.total_size = total_size_;
  response.resumed = resumed_;
  return response;
}

}  // namespace cubist
