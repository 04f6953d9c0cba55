#include "registry/http_range_access.h"

#include <algorithm>

namespace cubist {
namespace {

// A request costs more than this many bytes more.
constexpr std::uint64_t kMinRequestBytes = 32 * 1024;
// Pieces above this are not kept: they are read once.
constexpr std::uint64_t kMaxKeptBytes = 32 * 1024 * 1024;
// One allocation on the word of an index must stay reasonable.
constexpr std::uint64_t kMaxReadBytes = std::uint64_t{1} << 30;

}  // namespace

Result<std::shared_ptr<HttpRangeAccess>> HttpRangeAccess::open(
    HttpClient& client, Url url, std::shared_ptr<const HttpProfile> profile,
    std::optional<Known> known) {
  std::shared_ptr<HttpRangeAccess> access(
      new HttpRangeAccess(client, std::move(url), std::move(profile)));
  if (known) {
    access->size_ = known->size;
    access->validator_ = std::move(known->validator);
    access->keep(known->offset, std::move(known->bytes));
  } else {
    CUBIST_RETURN_IF_ERROR(access->fetch_tail());
  }
  return access;
}

Status HttpRangeAccess::fetch_tail() {
  HttpRequest request;
  request.url = url_;
  request.profile = profile_;
  request.last_bytes = kTailBytes;
  request.max_bytes = kTailBytes;
  CUBIST_ASSIGN_OR_RETURN(HttpResponse tail, to_result(client_.get(std::move(request))));
  size_ = tail.total_size.value_or(tail.body.size());
  validator_ = tail.validator;
  if (tail.final_url.text != url_.text) redirected_ = std::move(tail.final_url);
  const std::uint64_t offset = size_ - tail.body.size();
  keep(offset, std::move(tail.body));
  return {};
}

HttpRequest HttpRangeAccess::request_for(std::uint64_t offset, std::uint64_t length) const {
  HttpRequest request;
  request.url = redirected_.value_or(url_);
  request.profile = profile_;
  request.range = HttpRequest::Range{offset, length};
  request.max_bytes = length;
  request.if_range = validator_;
  request.total_size = size_;
  return request;
}

bool HttpRangeAccess::forget_redirect() {
  const bool had_one = redirected_.has_value();
  redirected_.reset();
  return had_one;
}

Result<std::vector<std::uint8_t>> HttpRangeAccess::accept(HttpResponse response) {
  if (response.changed) {
    changed_ = true;
    return fail(
        StatusCode::kIntegrity,
        "'{}' has changed on the server since its directory was read; run the command again",
        name_);
  }
  return std::move(response.body);
}

Result<HttpResponse> HttpRangeAccess::get_part(std::uint64_t offset, std::uint64_t length) {
  HttpResult result = client_.get(request_for(offset, length));
  // A signed address from a redirect may have run out; the first one leads to a fresh one.
  if (!result && result.error().status >= 400 && forget_redirect()) {
    result = client_.get(request_for(offset, length));
  }
  return to_result(std::move(result));
}

Status HttpRangeAccess::fetch(std::uint64_t offset, std::uint64_t length) {
  CUBIST_ASSIGN_OR_RETURN(HttpResponse response, get_part(offset, length));
  CUBIST_ASSIGN_OR_RETURN(std::vector<std::uint8_t> bytes, accept(std::move(response)));
  keep(offset, std::move(bytes));
  return {};
}

void HttpRangeAccess::keep(std::uint64_t offset, std::vector<std::uint8_t> bytes) {
  if (bytes.empty()) return;
  const std::uint64_t end = offset + bytes.size();
  for (auto inside = pieces_.lower_bound(offset);
       inside != pieces_.end() && inside->first + inside->second.size() <= end;) {
    kept_bytes_ -= inside->second.size();
    inside = pieces_.erase(inside);
  }
  kept_bytes_ += bytes.size();
  pieces_.insert_or_assign(offset, std::move(bytes));
}

/// Copies what is known of [offset, offset + out.size()); false if [gap_begin, gap_end) is not.
bool HttpRangeAccess::copy_known(std::uint64_t offset, std::span<std::uint8_t> out,
                                 std::uint64_t& gap_begin, std::uint64_t& gap_end) const {
  const std::uint64_t end = offset + out.size();
  std::uint64_t at = offset;
  gap_begin = end;
  gap_end = offset;
  auto piece = pieces_.upper_bound(offset);
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end() && piece->first < end; ++piece) {
    const std::uint64_t piece_end = piece->first + piece->second.size();
    if (piece_end <= at) continue;
    if (piece->first > at) {
      gap_begin = std::min(gap_begin, at);
      gap_end = piece->first;
      at = piece->first;
    }
    const std::uint64_t stop = std::min(end, piece_end);
    const auto* from = piece->second.data() + (at - piece->first);
    std::copy(from, from + (stop - at), out.data() + (at - offset));
    at = stop;
  }
  if (at < end) {
    gap_begin = std::min(gap_begin, at);
    gap_end = end;
  }
  return gap_begin >= gap_end;
}

Status HttpRangeAccess::read(std::uint64_t offset, std::span<std::uint8_t> out) {
  if (offset > size_ || size_ - offset < out.size()) {
    return fail(StatusCode::kIntegrity, "'{}' has {} bytes; bytes {} to {} were expected", name_,
                size_, offset, offset + out.size());
  }
  if (out.size() > kMaxReadBytes) {
    return fail(StatusCode::kIntegrity, "'{}': {} bytes in one read are refused", name_,
                out.size());
  }
  // The tail (with a zip's directory) is the last piece and stays; the others go when it gets much.
  while (pieces_.size() > 1 && kept_bytes_ > kMaxKeptBytes) {
    kept_bytes_ -= pieces_.begin()->second.size();
    pieces_.erase(pieces_.begin());
  }
  std::uint64_t gap_begin = 0;
  std::uint64_t gap_end = 0;
  if (copy_known(offset, out, gap_begin, gap_end)) return {};
  // A little more than asked for, up to the next piece that is known.
  std::uint64_t limit = size_;
  if (const auto next = pieces_.lower_bound(gap_end); next != pieces_.end()) limit = next->first;
  gap_end = std::max(gap_end, std::min(limit, gap_begin + kMinRequestBytes));
  CUBIST_RETURN_IF_ERROR(fetch(gap_begin, gap_end - gap_begin));
  if (copy_known(offset, out, gap_begin, gap_end)) return {};
  return fail(StatusCode::kInternal, "'{}': bytes from {} were read and are not there", name_,
              offset);
}

}  // namespace cubist
