#include "oci/transfer.h"

#include <algorithm>
#include <thread>

#include "archive/zip.h"
#include "base/log.h"
#include "document/json_text.h"
#include "oci/bytes.h"

namespace cubist::oci {
namespace {

// Pieces of an upload that is not taken whole. Unit: bytes.
constexpr std::uint64_t kChunkBytes = 16ULL << 20;

std::string asked(const Session& session, HttpMethod method, const std::string& path) {
  return fmt::format("{} {}", to_string(method), session.url(path).shown());
}

std::string blob_path(const Descriptor& blob) { return "blobs/" + digest_text(blob.digest); }

/// One upload session: from POST to the last PUT.
class Upload {
 public:
  Upload(Session& session, HttpClient& client, const Descriptor& blob, const HttpBody& body)
      : session_(session), client_(client), blob_(blob), body_(body) {}

  /// True if there is nothing left to send: the registry mounted the blob.
  Result<bool> begin(const std::string& mount_from) {
    std::string path = "blobs/uploads/";
    if (!mount_from.empty()) {
      path += fmt::format("?mount={}&from={}", digest_text(blob_.digest), mount_from);
    }
    HttpRequest request;
    request.url = session_.url(path);
    request.method = HttpMethod::kPost;
    CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session_.send(client_, request));
    if (response.status == 201 && !mount_from.empty()) return true;
    if (response.status != 202) {
      return tl::unexpected<Error>(refusal(response, asked(session_, HttpMethod::kPost, path)));
    }
    CUBIST_RETURN_IF_ERROR(go_on_at(response));
    broke_off_ = true;
    return false;
  }

  /// False: the registry does not take it in one piece.
  Result<bool> send_whole() {
    CUBIST_ASSIGN_OR_RETURN(const HttpResponse response,
                            session_.send(client_, finish_request(body_)));
    if (response.status == 201) return true;
    CUBIST_RETURN_IF_ERROR(check_bytes(response));
    const bool in_pieces = response.status == 404 || response.status == 405 ||
                           response.status == 411 || response.status == 413 ||
                           response.status == 415 || response.status == 416;
    if (in_pieces) return false;
    return refuse(response);
  }

  Status send_in_pieces() {
    for (std::uint64_t at = 0; at < body_.length;) {
      const std::uint64_t length = std::min(kChunkBytes, body_.length - at);
      HttpRequest request = piece_request(HttpMethod::kPatch);
      request.body = HttpBody{body_.from, body_.offset + at, length};
      request.headers.push_back(fmt::format("Content-Range: {}-{}", at, at + length - 1));
      CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session_.send(client_, request));
      if (response.status != 202) return refuse(response);
      CUBIST_RETURN_IF_ERROR(go_on_at(response));
      at += length;
    }
    CUBIST_ASSIGN_OR_RETURN(const HttpResponse response,
                            session_.send(client_, finish_request(std::nullopt)));
    if (response.status == 201) return {};
    CUBIST_RETURN_IF_ERROR(check_bytes(response));
    return refuse(response);
  }

  /// What failed was the way: the same upload may well succeed.
  bool broke_off() const { return broke_off_; }

 private:
  tl::unexpected<Error> refuse(const HttpResponse& response) {
    broke_off_ = false;
    return tl::unexpected<Error>(refusal(response, what()));
  }

  std::string what() const { return "upload of " + digest_text(blob_.digest); }

  /// A try of a part of an upload leaves it in a state that is not known: all is begun anew.
  HttpRequest piece_request(HttpMethod method) const {
    HttpRequest request;
    request.url = location_;
    request.method = method;
    request.headers.emplace_back("Content-Type: application/octet-stream");
    request.profile = session_.profile_for_one_try();
    return request;
  }

  HttpRequest finish_request(const std::optional<HttpBody>& body) const {
    HttpRequest request = piece_request(HttpMethod::kPut);
    request.url.text +=
        fmt::format("{}digest={}", request.url.text.find('?') == std::string::npos ? '?' : '&',
                    digest_text(blob_.digest));
    request.body = body;
    return request;
  }

  Status go_on_at(const HttpResponse& response) {
    const auto next = resolve_url(response.final_url, response.location);
    const bool downgraded = next && session_.url("").scheme == "https" && next->scheme != "https";
    if (!next || response.location.empty() || downgraded) {
      return fail(StatusCode::kNetwork, "{}: the registry says to go on at {}; not followed",
                  what(), in_quotes(shown_value(response.location)));
    }
    location_ = *next;
    location_.user.clear();
    location_.password.clear();
    return {};
  }

  /// The registry hashes what it gets.
  Status check_bytes(const HttpResponse& response) const {
    const std::string_view text = text_of(response.body);
    if (text.find("DIGEST_INVALID") == std::string::npos &&
        text.find("SIZE_INVALID") == std::string::npos) {
      return {};
    }
    return fail(StatusCode::kIntegrity,
                "{}: what arrived has another digest; '{}' changed while it was sent, or the "
                "connection alters bytes",
                what(), body_.from->name());
  }

  Session& session_;
  HttpClient& client_;
  const Descriptor& blob_;
  const HttpBody& body_;
  Url location_;
  bool broke_off_ = false;
};

Result<bool> is_present(Session& session, HttpClient& client, const Descriptor& blob) {
  HttpRequest request;
  request.url = session.url(blob_path(blob));
  request.method = HttpMethod::kHead;
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session.send(client, request));
  if (response.status == 404 || response.status == 405) return false;
  if (response.status != 200) {
    return tl::unexpected<Error>(
        refusal(response, asked(session, HttpMethod::kHead, blob_path(blob))));
  }
  return !response.content_length || *response.content_length == blob.size_bytes;
}

Result<Sent> upload_once(Upload& upload, const Descriptor& blob, const std::string& mount_from) {
  CUBIST_ASSIGN_OR_RETURN(const bool mounted, upload.begin(mount_from));
  if (mounted) return Sent::kMounted;
  CUBIST_ASSIGN_OR_RETURN(const bool taken, upload.send_whole());
  if (taken) return Sent::kUploaded;
  log(LogLevel::kInfo, "{}: sent in pieces", digest_text(blob.digest));
  CUBIST_RETURN_IF_ERROR(upload.begin({}));
  CUBIST_RETURN_IF_ERROR(upload.send_in_pieces());
  return Sent::kUploaded;
}

}  // namespace

Result<FetchedManifest> fetch_manifest(Session& session, HttpClient& client) {
  const std::string path = "manifests/" + session.reference().wanted();
  HttpRequest request;
  request.url = session.url(path);
  request.accept = std::string(kManifestType);
  request.max_bytes = kMaxImageBytes;
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session.send(client, request));
  if (response.status != 200) {
    return tl::unexpected<Error>(refusal(response, asked(session, HttpMethod::kGet, path)));
  }
  FetchedManifest manifest{std::string(text_of(response.body)), sha256(response.body)};
  const auto& wanted = session.reference().digest;
  if (wanted && *wanted != manifest.digest) {
    return fail(StatusCode::kIntegrity, "{}: the registry sent a manifest with digest {}",
                session.reference().text(), digest_text(manifest.digest));
  }
  if (!response.content_digest.empty() && response.content_digest != digest_text(manifest.digest)) {
    return fail(StatusCode::kIntegrity,
                "{}: the registry says that the manifest has digest {}, it has {}",
                session.reference().text(), in_quotes(response.content_digest),
                digest_text(manifest.digest));
  }
  return manifest;
}

Status put_manifest(Session& session, HttpClient& client, const std::string& text,
                    const Sha256Digest& digest) {
  const std::string path = "manifests/" + session.reference().tag;
  HttpRequest request;
  request.url = session.url(path);
  request.method = HttpMethod::kPut;
  request.headers.push_back(fmt::format("Content-Type: {}", kManifestType));
  request.body = HttpBody{memory_access("manifest", bytes_of(text)), 0, text.size()};
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session.send(client, request));
  if (response.status != 201) {
    return tl::unexpected<Error>(refusal(response, asked(session, HttpMethod::kPut, path)));
  }
  if (!response.content_digest.empty() && response.content_digest != digest_text(digest)) {
    return fail(StatusCode::kIntegrity, "{}: the registry stored a manifest with digest {}, not {}",
                session.reference().text(), in_quotes(response.content_digest),
                digest_text(digest));
  }
  return {};
}

Result<std::string> fetch_small_blob(Session& session, HttpClient& client, const Descriptor& blob) {
  HttpRequest request;
  request.url = session.url(blob_path(blob));
  request.max_bytes = blob.size_bytes;
  request.html_is_fine = true;
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session.send(client, request));
  if (response.status != 200) {
    return tl::unexpected<Error>(
        refusal(response, asked(session, HttpMethod::kGet, blob_path(blob))));
  }
  if (response.body.size() != blob.size_bytes || sha256(response.body) != blob.digest) {
    return fail(StatusCode::kIntegrity,
                "{}: the registry sent {} bytes with digest {} as {} ({} bytes)",
                session.reference().text(), response.body.size(),
                digest_text(sha256(response.body)), digest_text(blob.digest), blob.size_bytes);
  }
  return std::string(text_of(response.body));
}

Status fetch_blob(Session& session, HttpClient& client, const Descriptor& blob, std::uint64_t have,
                  std::shared_ptr<HttpSink> sink) {
  HttpRequest request;
  request.url = session.url(blob_path(blob));
  request.max_bytes = blob.size_bytes - have;
  request.total_size = blob.size_bytes;
  request.html_is_fine = true;
  request.sink = std::move(sink);
  if (have != 0) request.range = HttpRequest::Range{have, blob.size_bytes - have};
  CUBIST_ASSIGN_OR_RETURN(const HttpResponse response, session.send(client, request));
  if (response.status == 200 || response.status == 206) return {};
  return tl::unexpected<Error>(
      refusal(response, asked(session, HttpMethod::kGet, blob_path(blob))));
}

Result<Sent> send_blob(Session& session, HttpClient& client, const Descriptor& blob,
                       const HttpBody& body, const std::string& mount_from) {
  CUBIST_ASSIGN_OR_RETURN(const bool present, is_present(session, client, blob));
  if (present) return Sent::kPresent;
  const RetryPolicy policy = session.retry();
  for (int failed = 0;;) {
    Upload upload(session, client, blob, body);
    auto sent = upload_once(upload, blob, mount_from);
    const bool worth_it =
        !sent && sent.error().code() == StatusCode::kNetwork && upload.broke_off();
    const auto delay = worth_it ? retry_delay(policy, ++failed, std::nullopt, 0.5) : std::nullopt;
    if (!delay) return sent;
    log(LogLevel::kInfo, "{}; begun anew", sent.error().message());
    std::this_thread::sleep_for(*delay);
  }
}

}  // namespace cubist::oci
