#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "archive/random_access.h"
#include "registry/http_client.h"

namespace cubist {

/// A file behind HTTP range requests, and what was read of it so far. One thread at a time.
///
/// Opening costs one request, of the last 72 KiB: it tells the size, and a zip's end record is in
/// it. Reads near each other share requests. If the file changes on the server, reads fail; bytes
/// of two versions are never mixed as far as the server's validator or the size tells them apart.
class HttpRangeAccess : public RandomAccess {
 public:
  /// A piece of the file that is known beforehand, so that opening costs no request.
  struct Known {
    std::uint64_t size = 0;
    std::string validator;
    std::uint64_t offset = 0;
    std::vector<std::uint8_t> bytes;
  };

  /// What opening reads of the end.
  /// A zip's end record with the longest comment and the zip64 records before it lie in the last
  /// 65,633 bytes (PKWARE APPNOTE 4.3.14 to 4.3.16); a little more costs nothing.
  static constexpr std::uint64_t kTailBytes = 72 * 1024;

  /// client   outlives the result
  /// errors   kNetwork; kIntegrity: HTML in place of a file
  static Result<std::shared_ptr<HttpRangeAccess>> open(HttpClient& client, Url url,
                                                       std::shared_ptr<const HttpProfile> profile,
                                                       std::optional<Known> known = std::nullopt);

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read(std::uint64_t offset, std::span<std::uint8_t> out) override;

  const std::string& validator() const { return validator_; }
  /// A read failed since the file is another one than when it was opened.
  bool changed() const { return changed_; }

  /// The request for a part, for callers who make it themselves. Redirects that were met are used.
  HttpRequest request_for(std::uint64_t offset, std::uint64_t length) const;
  /// What an answer to such a request means here: an error if the file has changed.
  Result<std::vector<std::uint8_t>> accept(HttpResponse response);
  /// Forgets the redirect; true if there was one and the request is worth making again.
  bool forget_redirect();

 private:
  HttpRangeAccess(HttpClient& client, Url url, std::shared_ptr<const HttpProfile> profile)
      : client_(client), url_(std::move(url)), profile_(std::move(profile)), name_(url_.shown()) {}

  Status fetch_tail();
  Status fetch(std::uint64_t offset, std::uint64_t length);
  Result<HttpResponse> get_part(std::uint64_t offset, std::uint64_t length);
  void keep(std::uint64_t offset, std::vector<std::uint8_t> bytes);
  bool copy_known(std::uint64_t offset, std::span<std::uint8_t> out, std::uint64_t& gap_begin,
                  std::uint64_t& gap_end) const;

  HttpClient& client_;
  Url url_;
  std::optional<Url> redirected_;
  std::shared_ptr<const HttpProfile> profile_;
  std::string name_;
  std::uint64_t size_ = 0;
  std::string validator_;
  bool changed_ = false;
  std::map<std::uint64_t, std::vector<std::uint8_t>> pieces_;  ///< by offset; none overlap
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace cubist
