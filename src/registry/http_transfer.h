#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "registry/http_headers.h"
#include "registry/http_request.h"

namespace cubist {

/// One request from first try to result: redirects, tries, resuming, judging of what comes in.
/// Pure: the wire, the clock and the dice are outside, so that anything a server may say can be
/// tested.
///
/// What was asked for comes with 200 or 206 of a GET. With another method, or where any status will
/// do, what else comes is an answer as it is, of which a small body is kept.
///
///   wire() -> take_header()* -> take_body()* -> finish() -> wire() ... until finish() is kDone
class HttpTransfer {
 public:
  explicit HttpTransfer(HttpRequest request);

  /// What to send now.
  struct Wire {
    const Url& url;
    std::string range;         ///< of a Range header without "bytes="; may be empty
    std::string if_range;      ///< may be empty
    bool credentials = false;  ///< the URL is of the origin that the request was for
  };
  Wire wire() const;

  /// False: nothing more is wanted of this answer; end it.
  bool take_header(std::string_view line, std::time_t now);
  bool take_body(std::span<const std::uint8_t> bytes);

  /// How the exchange ended below HTTP.
  struct End {
    bool complete = false;     ///< all that the server announced came
    bool transient = false;    ///< else: worth another try
    bool unreachable = false;  ///< there was no connection
    std::string reason;        ///< else: why, for people
    std::string advice;        ///< and what to do
  };
  enum class Step : std::uint8_t { kDone, kRedirect, kRetry };
  struct Next {
    Step step = Step::kDone;
    std::chrono::milliseconds delay{0};
  };
  Next finish(const End& end, double random);

  /// After kDone, once.
  HttpResult take_result();

  /// What came so far, if a later request can go on from it.
  std::shared_ptr<const PartialBody> take_partial();

  const HttpRequest& request() const { return request_; }
  std::uint64_t received_bytes() const { return request_.sink ? sunk_bytes_ : body_.size(); }

 private:
  enum class Judgement : std::uint8_t { kPending, kKeep, kAnswer, kDiscard, kRestart, kReject };

  void judge();
  void judge_whole();
  void judge_part();
  bool is_answer() const;
  bool keep(std::span<const std::uint8_t> bytes);
  void drop_body();
  void reserve_body();
  bool judge_range(const ContentRange& range);
  void reject(StatusCode code, std::string why);
  Next redirect();
  Next retry_or_fail(bool transient, std::string_view why, std::string_view advice, double random);
  bool resuming() const { return received_bytes() != 0; }
  std::string describe(std::string_view why) const;

  HttpRequest request_;
  Url url_;  ///< of the present try
  ResponseHeaders headers_;
  Judgement judgement_ = Judgement::kPending;
  std::vector<std::uint8_t> body_;
  std::uint64_t sunk_bytes_ = 0;      ///< given to the request's sink
  std::uint64_t expected_bytes_ = 0;  ///< of the body as a whole; 0 = not known
  std::uint64_t discarded_bytes_ = 0;
  std::string validator_;  ///< of the version body_ is from
  std::optional<std::uint64_t> total_size_;
  int failed_tries_ = 0;
  int redirects_ = 0;
  bool changed_ = false;
  bool resumed_ = false;
  std::optional<HttpError> error_;
};

}  // namespace cubist
